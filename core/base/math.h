#pragma once

#include <cstdint>

#include "base/block.h"

namespace nescio {

/// ceil(count / size).
NESCIO_INLINE std::uint64_t ceil_div(std::uint64_t count, std::uint64_t size) {
  return (count + size - 1) / size;
}

}  // namespace nescio
