#pragma once

#include <cstddef>
#include <cstdint>

#include "base/block.h"

namespace nescio::ot {

/// Sets out[i] to the lowest bit of blocks[i], the receiver's choice.
void low_bits(const Block* blocks, std::size_t count, std::uint8_t* out);

}  // namespace nescio::ot
