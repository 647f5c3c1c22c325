#pragma once

// Walks over a GGM tree (Goldreich, Goldwasser and Micali 1986): a node is a seed, its children are
// the generator's output on it. The nodes of a level are numbered from the left; with arity 2^r the
// parent of node i is node i >> r.
//
// A walk never holds more than the siblings along one path and one chunk of the bottom level, so
// its memory is O(depth) whatever the size of the tree (the paper's memory-bounded traversal,
// section 3.2.3): above a chunk it goes down one path, inside a chunk it goes level by level, which
// keeps the generator's wide kernels full.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/block.h"
#include "base/buffer.h"
#include "prg/prg.h"

namespace nescio::ggm {

/// A tree by its root. `corrections` holds `arity` blocks for each level, root first, and is added
/// to the children of nodes whose control bit is set; it outlives the tree.
struct Tree {
  const prg::Generator* generator;
  unsigned depth;
  Block root;
  const Block* corrections;

  const Block* level_corrections(unsigned level) const {
    return corrections + (static_cast<std::size_t>(level) << generator->radix_bits);
  }
};

/// Finds nodes of one level, remembering the siblings on the way: the next node to the right costs
/// less than one expansion on average.
class Cursor {
 public:
  Cursor(const Tree& tree, unsigned level);

  /// Node `index` of the cursor's level.
  const Block& seek(std::uint64_t index);

 private:
  std::uint64_t prefix(std::uint64_t index, unsigned level) const {
    return index >> (tree_.generator->radix_bits * (level_ - level));
  }

  Tree tree_;
  unsigned level_;
  bool started_ = false;
  std::uint64_t current_ = 0;
  /// siblings_[k]: the children of the path's node at level k.
  std::vector<std::array<Block, prg::kMostArity>> siblings_;
};

/// The bottom level of a tree, chunk by chunk.
class Walk {
 public:
  /// Room for the levels inside a chunk; one for each thread.
  struct Workspace {
    explicit Workspace(unsigned chunk_bits = kChunkBits);
    Buffer<Block> front, back;
  };

  /// A chunk has at most 2^chunk_bits nodes. 1,024 fill the widest kernels and half a 32 KB cache.
  static constexpr unsigned kChunkBits = 10;

  explicit Walk(const Tree& tree, unsigned chunk_bits = kChunkBits);

  /// Nodes in a chunk, a power of the arity; chunks begin at its multiples.
  std::uint64_t chunk() const { return std::uint64_t{1} << chunk_bits_; }

  /// The bottom nodes first..last-1, which lie in one chunk. Valid until the next use of `space`.
  std::span<const Block> nodes(std::uint64_t first, std::uint64_t last, Workspace& space);

 private:
  Tree tree_;
  unsigned chunk_levels_;
  unsigned chunk_bits_;
  Cursor cursor_;
};

}  // namespace nescio::ggm
