#pragma once

// Trees that make shares of large one-hot vectors. tests/spec/lut_tree.py is the specification: both
// parties' nodes of a level are equal, but for one node on a secret path, where they differ by a
// secret block. A node's lowest bit is its control bit.
//
// A node has two words. The nodes of a level are the first words of a table's vector: their children
// replace them, and last the entries of the vector replace the leaves. A step hashes the nodes, and a
// second one corrects the results, after an exchange between the parties.
//
// The time and the memory addresses depend only on counts and sizes.

#include <cstddef>
#include <cstdint>

#include "base/block.h"
#include "base/thread_pool.h"
#include "base/tier.h"
#include "lut/fields.h"

namespace nescio::lut {

/// Entries of a block: a leaf stands for 2^7.
inline constexpr unsigned kBlockBits = 7;
/// The largest trees: 2^5 leaves, of tables of 2^12 entries.
inline constexpr unsigned kMaxTreeLevels = 5;

/// The trees of `count` tables at a level, with 2^level nodes each, which may be their leaves.
struct Trees {
  unsigned level;
  bool are_leaves;
  std::size_t count;

  std::size_t nodes() const { return std::size_t{1} << level; }
  /// The blocks that replace the nodes: two children, or a block of the vector.
  std::size_t blocks() const { return are_leaves ? nodes() : 2 * nodes(); }
};

/// Replaces nodes x by their children H(x) and H(x) ^ x, or leaves by H(x). Writes the XOR of each
/// table's H(x), two words, and their control bits: bit j is that of node j.
///
/// Keys of H are derived from `base`, one for each level of 64 tables. Throws Error(argument) for a
/// level that no tree has, or words that are too few.
void expand_trees(const Trees& trees, Block base, const Words<std::uint64_t>& nodes,
                  std::uint64_t* sums, std::uint32_t* controls, ThreadPool& pool, Tier tier);

/// Adds a table's correction, two words, to all blocks that replaced nodes with control bit 1. Throws
/// as expand_trees does.
void correct_trees(const Trees& trees, const std::uint64_t* corrections,
                   const std::uint32_t* controls, const Words<std::uint64_t>& nodes,
                   ThreadPool& pool);

}  // namespace nescio::lut
