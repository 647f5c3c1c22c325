#pragma once

#include <cstddef>
#include <cstdint>

#include "base/block.h"

namespace nescio::ot {

/// out[i] = the lowest bit of blocks[i]: the receiver's choice.
void low_bits(const Block* blocks, std::size_t count, std::uint8_t* out);

}  // namespace nescio::ot
