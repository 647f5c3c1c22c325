#pragma once

namespace nescio::bindings {

/// Makes the engine's errors those of nescio.errors, in the module that calls it.
void translate_errors();

}  // namespace nescio::bindings
