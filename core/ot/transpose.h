#pragma once

#include <cstddef>
#include <cstdint>

#include "base/block.h"

namespace nescio::ot {

/// out[i] has bit i of row j at bit j, for 128 rows of `bytes` bytes that stand one after the other;
/// 8 * bytes blocks. Bit 0 is the lowest of byte 0.
void transpose_bits(const std::uint8_t* rows, std::size_t bytes, Block* out);

}  // namespace nescio::ot
