#pragma once

// Operations on the nodes of a level for growing and puncturing trees, one file per CPU tier.

#include <cstddef>
#include <cstdint>

#include "base/block.h"
#include "base/tier.h"
#include "ot/keys.h"

namespace nescio::ot {

/// Two siblings of a level, nodes 2 * index and 2 * index + 1. `index` is secret: kernels compare
/// it with the number of every pair and blend in registers.
struct Pair {
  std::uint64_t index;
  Block nodes[2];
};

/// The children of node x are H(x) and H(x) ^ x. The expand functions write the children of n nodes
/// and return the XOR of the left ones. n must be even for those that take a pair.
struct TreeKernels {
  using Expand = Block (*)(const RoundKeys& keys, const Block* nodes, std::size_t n,
                           Block* children);
  using ExpandPatched = Block (*)(const RoundKeys& keys, const Block* nodes, std::size_t n,
                                  const Pair& pair, Block* children);

  Expand expand;
  Expand expand_last;  ///< clears the lowest bit of each child
  ExpandPatched expand_with_pair;
  ExpandPatched expand_last_with_pair;

  /// Stores the pair at its position among n nodes, n even.
  void (*store_pair)(Block* nodes, std::size_t n, const Pair& pair);

  /// Copies `from` to part `place`, which is secret, of `parts` parts of n blocks. n is a multiple
  /// of 4.
  void (*store_part)(Block* blocks, std::size_t parts, std::size_t n, std::uint64_t place,
                     const Block* from);
};

/// The kernels of `tier`, or of the next narrower tier that has them.
const TreeKernels& tree_kernels(Tier tier);

NESCIO_TIERS(extern const TreeKernels kTreeKernels;)

}  // namespace nescio::ot
