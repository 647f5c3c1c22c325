#pragma once

// Walks over GGM trees (Goldreich, Goldwasser and Micali 1986): a node is a seed, and its children are
// the generator's output on it. The nodes of a level are numbered from the left; with arity 2^r the
// parent of node i is node i >> r.
//
// A walk stores only the siblings along one path and one chunk of the bottom level. Its memory is
// O(depth) per tree, independent of the number of leaves (the memory-bounded traversal of "GPU-based
// Private Information Retrieval", 2024, section 3.2.3). Above a chunk it follows one path; inside a
// chunk it expands level by level. Trees of one shape are walked in step: one call of the generator
// expands a level of all trees, which fills its wide kernels even if chunks are small.

#include <cstddef>
#include <cstdint>

#include "base/block.h"
#include "base/buffer.h"
#include "prg/prg.h"

namespace nescio::ggm {

/// Trees of one shape. The pointers are not owned.
///
/// `corrections` has, for each level from the root, `arity` blocks per tree, which are added to the
/// children of nodes whose control bit is set. Levels are `level_stride` blocks apart.
struct Forest {
  const prg::Generator* generator;
  unsigned depth;
  std::size_t trees;
  const Block* roots;
  const Block* corrections;
  std::size_t level_stride;

  /// Returns the corrections of the children of 2^node_bits nodes per tree at `level`.
  prg::Corrections at(unsigned level, unsigned node_bits) const {
    return {corrections + level * level_stride,
            trees == 1 ? prg::Corrections::kOneTree : node_bits};
  }
};

/// Nodes of a chunk: node first + i of tree k is data[k * per_tree + i].
struct Nodes {
  const Block* data;
  std::uint64_t first;
  std::size_t per_tree;
};

/// The bottom level of a forest, chunk by chunk.
class Walk {
 public:
  /// A chunk of 1,024 nodes fills the widest kernels and half of a 32 KB cache.
  static constexpr unsigned kChunkBits = 10;

  /// Walks in chunks of at most 2^chunk_bits nodes per tree.
  explicit Walk(const Forest& forest, unsigned chunk_bits = kChunkBits);

  /// Returns the nodes of a tree per chunk, a power of the arity. Chunks begin at its multiples.
  std::uint64_t chunk() const { return std::uint64_t{1} << chunk_bits_; }

  /// Returns nodes first..last-1, which must be in one chunk; valid until the next call. For a single
  /// tree these are exactly those nodes, for several trees the whole chunk. Moving to the next chunk
  /// costs less than one expansion per tree on average.
  Nodes nodes(std::uint64_t first, std::uint64_t last);

  /// Begins anew, with other trees in the memory that the forest points to.
  void restart();

 private:
  const Block* seek(std::uint64_t index);
  std::uint64_t prefix(std::uint64_t index, unsigned level) const {
    return index >> (radix_bits_ * (path_levels_ - level));
  }

  Forest forest_;
  unsigned radix_bits_;
  unsigned chunk_levels_;
  unsigned chunk_bits_;
  unsigned path_levels_;

  // The path to the current chunk: the node of each tree at level k, and all its children.
  bool started_ = false;
  std::uint64_t current_ = 0;
  Buffer<Block> path_;
  Buffer<Block> siblings_;

  Buffer<Block> levels_[2];  // alternating levels of the chunk
};

}  // namespace nescio::ggm
