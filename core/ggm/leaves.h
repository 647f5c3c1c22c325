#pragma once

// Walks to some leaves of GGM trees (see walk.h): each node above one of them is expanded once.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/block.h"
#include "base/buffer.h"
#include "ggm/walk.h"

namespace nescio::ggm {

/// The walk to the same leaves of one tree after another, all of one shape.
class Leaves {
 public:
  /// For trees of a depth and 2^radix_bits children a node, and at most `most` leaves at a time.
  Leaves(unsigned depth, unsigned radix_bits, std::size_t most);

  /// Chooses the leaves, whose numbers increase.
  void choose(std::span<const std::uint64_t> leaves);

  /// Returns their nodes in the only tree of a forest, in their order; valid until the next call.
  const Block* nodes(const Forest& tree);

 private:
  unsigned depth_, radix_bits_;
  std::vector<std::vector<std::size_t>>
      levels_;  // places of nodes among the children of those above
  Buffer<Block> nodes_, children_;
};

}  // namespace nescio::ggm
