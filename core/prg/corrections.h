#pragma once

#include <cstddef>

#include "base/block.h"

namespace nescio::prg {

/// The corrections of consecutive nodes of one or more trees: nodes g * 2^group_bits to
/// (g + 1) * 2^group_bits - 1 belong to tree g, which has its own corrections.
struct Corrections {
  const Block* blocks;
  unsigned group_bits;

  /// All nodes belong to one tree.
  static constexpr unsigned kOneTree = 63;

  /// Returns the corrections of the children (or the leaf) of node i, `width` blocks.
  NESCIO_INLINE const Block* of(std::size_t i, std::size_t width) const {
    return blocks + width * (i >> group_bits);
  }
};

}  // namespace nescio::prg
