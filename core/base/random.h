#pragma once

#include <cstddef>

namespace nescio {

/// Fills `bytes` bytes from the operating system's cryptographic generator, the only source of
/// secrets in Nescio. Throws Error(resource) if it fails; there is no fallback.
void random_bytes(void* out, std::size_t bytes);

}  // namespace nescio
