#pragma once

#include <cstddef>

#include "base/block.h"

namespace nescio::prg {

/// The corrections of a run of nodes that belong to one or more trees, each with corrections of its
/// own: nodes g * 2^group_bits .. (g + 1) * 2^group_bits - 1 are of tree g.
struct Corrections {
  const Block* blocks;
  unsigned group_bits;

  /// All nodes belong to one tree.
  static constexpr unsigned kOneTree = 63;

  /// The corrections of the children (or of the leaf) of node i, `width` blocks.
  NESCIO_INLINE const Block* of(std::size_t i, std::size_t width) const {
    return blocks + width * (i >> group_bits);
  }
};

}  // namespace nescio::prg
