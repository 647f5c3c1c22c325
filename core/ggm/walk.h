#pragma once

// Walks over GGM trees (Goldreich, Goldwasser and Micali 1986): a node is a seed, its children are
// the generator's output on it. The nodes of a level are numbered from the left; with arity 2^r the
// parent of node i is node i >> r.
//
// A walk never holds more than the siblings along one path and one chunk of the bottom level, so
// its memory is O(depth) a tree, whatever the number of leaves (the memory-bounded traversal of
// "GPU-based Private Information Retrieval", 2024, section 3.2.3): above a chunk it goes down one
// path, inside a chunk it goes level by level. Trees of one shape walk in step, a level of all of
// them in one call of the generator, which keeps its wide kernels full even where chunks are small.

#include <cstddef>
#include <cstdint>

#include "base/block.h"
#include "base/buffer.h"
#include "prg/prg.h"

namespace nescio::ggm {

/// Trees of one shape by their roots. What it points to outlives it.
///
/// `corrections` holds for each level, root first, `arity` blocks for each tree, and is added to
/// the children of nodes whose control bit is set; the next level's stand `level_stride` blocks
/// further.
struct Forest {
  const prg::Generator* generator;
  unsigned depth;
  std::size_t trees;
  const Block* roots;
  const Block* corrections;
  std::size_t level_stride;

  /// The corrections of the children of 2^node_bits nodes a tree at `level`.
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
  /// Chunks of 1,024 nodes fill the widest kernels and half a 32 KB cache.
  static constexpr unsigned kChunkBits = 10;

  /// Walks in chunks of at most 2^chunk_bits nodes a tree.
  explicit Walk(const Forest& forest, unsigned chunk_bits = kChunkBits);

  /// Nodes of a tree in a chunk, a power of the arity; chunks begin at its multiples.
  std::uint64_t chunk() const { return std::uint64_t{1} << chunk_bits_; }

  /// Nodes first..last-1, which lie in one chunk, and possibly some around them; valid until the
  /// next call. A single tree gets exactly those, several the whole chunk. Moving on to the next
  /// chunk costs less than one expansion a tree on average.
  Nodes nodes(std::uint64_t first, std::uint64_t last);

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

  // The path to the current chunk: at level k the node of each tree, and all its children.
  bool started_ = false;
  std::uint64_t current_ = 0;
  Buffer<Block> path_;
  Buffer<Block> siblings_;

  Buffer<Block> levels_[2];  // of the chunk, in turn
};

}  // namespace nescio::ggm
