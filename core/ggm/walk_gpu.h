#pragma once

// Expansion of GGM trees on a GPU. In a level the tree is the fastest index: node i of tree k is
// nodes[(i - first) * trees + k]. Neighbouring threads have neighbouring trees, so their memory accesses
// coalesce and every lane of a warp does the same work.

#include <cstddef>
#include <cstdint>

#include "base/block.h"
#include "gpu/thread_block.h"
#include "prg/generator_gpu.h"

namespace nescio::ggm {

/// A ggm::Forest in device memory.
struct GpuForest {
  std::uint32_t trees;
  std::uint32_t depth;
  const Block* roots;
  const Block* corrections;
  std::size_t level_stride;
  prg::GpuTables tables;
};

/// Nodes first..first+count-1 of each tree at a level.
struct GpuNodes {
  const Block* data;
  std::uint64_t first;
  std::uint64_t count;

  NESCIO_INLINE std::uint64_t end() const { return first + count; }
};

/// Writes the children of a node, corrected if its control bit is set.
template <class G>
NESCIO_DEVICE inline void expand_node(const G& generator, const GpuForest& forest, unsigned level,
                                      std::uint32_t tree, Block node, Block* children) {
  constexpr unsigned kArity = 1u << G::kRadixBits;
  generator.children(node, children);
  const Block mask = block_mask(control_bit(node));
  const Block* corrections = forest.corrections + level * forest.level_stride + tree * kArity;
  NESCIO_UNROLL
  for (unsigned j = 0; j < kArity; ++j) children[j] ^= mask & corrections[j];
}

/// Expands the nodes of one level to the next. One thread per parent.
template <class G>
struct ExpandLevel {
  static constexpr unsigned kThreads = 128;
  static constexpr bool kCooperative = G::kSharedBytes > 0;

  GpuForest forest;
  unsigned level;     ///< level of the parents
  GpuNodes parents;   ///< the parents of `children`, and perhaps others
  GpuNodes children;  ///< the nodes to write to `out`
  Block* out;

  std::size_t shared_bytes() const { return G::kSharedBytes; }

  NESCIO_DEVICE std::uint64_t first_parent() const { return children.first >> G::kRadixBits; }
  NESCIO_DEVICE std::uint64_t parent_count() const {
    return ((children.end() - 1) >> G::kRadixBits) + 1 - first_parent();
  }
  gpu::Grid grid() const {
    return {static_cast<std::uint32_t>(ceil_div(parent_count() * forest.trees, kThreads)), 1};
  }

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const G generator(block, forest.tables, kCooperative ? block.shared() : nullptr, kThreads);
    // 32-bit divisions suffice: the children of 2^32 nodes do not fit in memory.
    const std::uint32_t id = block.x() * kThreads + block.thread();
    if (id >= parent_count() * forest.trees) return;
    const std::uint32_t tree = id % forest.trees;
    const std::uint64_t parent = first_parent() + id / forest.trees;
    Block own[1u << G::kRadixBits];
    expand_node(generator, forest, level, tree,
                parents.data[(parent - parents.first) * forest.trees + tree], own);
    NESCIO_UNROLL
    for (unsigned j = 0; j < 1u << G::kRadixBits; ++j) {
      const std::uint64_t child = (parent << G::kRadixBits | j);
      if (child < children.first || child >= children.end()) continue;
      out[(child - children.first) * forest.trees + tree] = own[j];
    }
  }
};

/// Computes a bottom node from the root: one expansion per level, of which one child is kept.
template <class G>
NESCIO_DEVICE inline Block descend(const G& generator, const GpuForest& forest, std::uint32_t tree,
                                   std::uint64_t node) {
  constexpr unsigned kArity = 1u << G::kRadixBits;
  Block at = forest.roots[tree];
  for (unsigned level = 0; level < forest.depth; ++level) {
    Block children[kArity];
    expand_node(generator, forest, level, tree, at, children);
    const auto digit =
        static_cast<unsigned>(node >> (G::kRadixBits * (forest.depth - 1 - level))) & (kArity - 1);
    at = children[0];
    NESCIO_UNROLL
    for (unsigned j = 1; j < kArity; ++j) {
      if (digit == j) at = children[j];
    }
  }
  return at;
}

}  // namespace nescio::ggm
