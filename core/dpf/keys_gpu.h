#pragma once

// The layout of keys for their copy to a GPU.

#include <cstddef>
#include <cstdint>

#include "dpf/key.h"

namespace nescio::dpf {

/// Offsets of the parts of some keys in one contiguous buffer, which is copied to the device at once.
struct KeysLayout {
  KeysLayout(const Shape& shape, std::size_t count)
      : keys(count),
        depth(shape.depth()),
        level_blocks(count << shape.radix_bits()),
        corrections(count),
        leaf_corrections(corrections + depth * level_blocks),
        parties(leaf_corrections + count * prg::kLeafBlocks) {}

  std::size_t bytes() const { return parties * sizeof(Block) + keys; }
  /// Returns the arrays in a buffer, which is aligned to a block.
  KeyArrays arrays(Block* buffer) const {
    return {reinterpret_cast<std::uint8_t*>(buffer + parties), buffer, buffer + corrections,
            level_blocks, buffer + leaf_corrections};
  }

  std::size_t keys;
  unsigned depth;
  std::size_t level_blocks;
  std::size_t corrections, leaf_corrections, parties;  // in blocks
};

}  // namespace nescio::dpf
