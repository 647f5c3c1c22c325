#pragma once

// The layout of keys for their copy to a GPU.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dpf/key.h"

namespace nescio::dpf {

/// Offsets of the parts of some keys in one contiguous buffer, which is copied to the device at once.
struct KeysLayout {
  KeysLayout(const ggm::Forest& forest, std::size_t count)
      : keys(count),
        depth(forest.depth),
        level_blocks(count << forest.generator->radix_bits),
        corrections(count),
        leaf_corrections(corrections + depth * level_blocks),
        parties(leaf_corrections + count * prg::kLeafBlocks) {}

  std::size_t bytes() const { return parties * sizeof(Block) + keys; }
  void write(const Keys& from, std::size_t first, const ggm::Forest& forest,
             std::uint8_t* out) const {
    const auto put = [out](std::size_t at, const Block* blocks, std::size_t n) {
      std::memcpy(out + at * sizeof(Block), blocks, n * sizeof(Block));
    };
    put(0, forest.roots, keys);
    for (unsigned level = 0; level < depth; ++level) {
      put(corrections + level * level_blocks, forest.corrections + level * forest.level_stride,
          level_blocks);
    }
    put(leaf_corrections, from.leaf_corrections(first, keys, 0).blocks, keys * prg::kLeafBlocks);
    for (std::size_t i = 0; i < keys; ++i) {
      out[parties * sizeof(Block) + i] = static_cast<std::uint8_t>(from.party(first + i));
    }
  }

  std::size_t keys;
  unsigned depth;
  std::size_t level_blocks;
  std::size_t corrections, leaf_corrections, parties;  // in blocks
};

}  // namespace nescio::dpf
