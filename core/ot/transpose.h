#pragma once

#include <cstddef>
#include <cstdint>

#include "base/block.h"

namespace nescio::ot {

/// Sets bit j of out[i] to bit i of row j, for 128 contiguous rows of `bytes` bytes. Writes 8 *
/// bytes blocks. Bit 0 of a row is the lowest bit of byte 0.
void transpose_bits(const std::uint8_t* rows, std::size_t bytes, Block* out);

}  // namespace nescio::ot
