#pragma once

namespace nescio::bindings {

/// Registers the translation of the engine's errors to those of nescio.errors, for the calling module.
void translate_errors();

}  // namespace nescio::bindings
