#pragma once

// Shared parts of growing and puncturing trees.

#include <algorithm>
#include <cstddef>

#include "base/block.h"
#include "base/buffer.h"
#include "ot/keys.h"
#include "ot/trees/kernels.h"

namespace nescio::ot {

inline constexpr std::size_t kMaxGroup = 16;

/// The number of trees of one task: about `leaves` leaves, at most kMaxGroup trees, and few enough
/// that every thread has several tasks.
inline std::size_t trees_per_task(std::size_t trees, unsigned depth, std::size_t leaves,
                                  unsigned threads) {
  const std::size_t share = trees / (4 * std::size_t{threads}) + 1;
  return std::clamp<std::size_t>(leaves >> depth, 1, std::min(share, kMaxGroup));
}

/// A leaf with its lowest bit cleared.
inline Block clear_low_bit(Block leaf) { return {leaf.lo & ~std::uint64_t{1}, leaf.hi}; }

/// Expands nodes to leaves depth-first, a run of nodes at a time.
class Walk {
 public:
  /// Nodes of a run: with their children they fit in the first-level cache.
  static constexpr std::size_t kRunNodes = 512;

  Walk(const TreeKernels& kernels, unsigned depth)
      : kernels_(kernels), depth_(depth), scratch_(std::size_t{depth} * 2 * kRunNodes) {}

  /// Writes the leaves below n nodes of a level. Adds the XOR of the left nodes of level l + 1 to
  /// sums[l], for l >= level. n is a power of two.
  void descend(const TreeKeys& keys, unsigned level, const Block* nodes, std::size_t n,
               Block* leaves, Block* sums) {
    for (std::size_t i = 0; i < n; i += kRunNodes) {
      const std::size_t run = std::min(kRunNodes, n - i);
      Block* own = leaves + (i << (depth_ - level));
      if (level + 1 == depth_) {
        sums[level] ^= kernels_.expand_last(keys[level], nodes + i, run, own);
      } else {
        Block* children = scratch_.data() + level * 2 * kRunNodes;
        sums[level] ^= kernels_.expand(keys[level], nodes + i, run, children);
        descend(keys, level + 1, children, 2 * run, own, sums);
      }
    }
  }

 private:
  const TreeKernels& kernels_;
  unsigned depth_;
  SecretBuffer<Block> scratch_;
};

}  // namespace nescio::ot
