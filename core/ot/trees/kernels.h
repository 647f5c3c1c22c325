#pragma once

// What growing and puncturing trees do with the nodes of a level, one file a CPU tier.

#include <cstddef>
#include <cstdint>

#include "base/block.h"
#include "base/tier.h"
#include "ot/keys.h"

namespace nescio::ot {

/// Two neighbours of a level, nodes 2 * place and 2 * place + 1. The place is secret: kernels
/// compare it with each pair's number in registers and blend.
struct Pair {
  std::uint64_t place;
  Block nodes[2];
};

/// The children of node x are H(x) and H(x) ^ x. A kernel that expands writes the children of n
/// nodes and returns the XOR of the left ones. n may be any number, with a pair an even one.
struct TreeKernels {
  using Expand = Block (*)(const RoundKeys& keys, const Block* nodes, std::size_t n,
                           Block* children);
  using ExpandPatched = Block (*)(const RoundKeys& keys, const Block* nodes, std::size_t n,
                                  const Pair& pair, Block* children);

  Expand expand;
  Expand expand_last;  ///< Clears the lowest bit of each child it writes.
  ExpandPatched expand_patched;
  ExpandPatched expand_last_patched;

  /// Puts the pair in its place among n nodes, n even.
  void (*patch)(Block* nodes, std::size_t n, const Pair& pair);

  /// Puts `from`, n blocks, n a multiple of 4, into part `place` of as many parts of n blocks as
  /// `parts` says.
  void (*place_part)(Block* blocks, std::size_t parts, std::size_t n, std::uint64_t place,
                     const Block* from);
};

/// The kernels of `tier`, or of the next narrower tier that has them.
const TreeKernels& tree_kernels(Tier tier);

NESCIO_TIERS(extern const TreeKernels kTreeKernels;)

}  // namespace nescio::ot
