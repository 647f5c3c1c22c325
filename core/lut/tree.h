#pragma once

// Trees that make shares of large one-hot vectors. tests/spec/lut_tree.py is the specification: both
// parties' nodes of a level are equal, but for one node on a secret path, where they differ by a
// secret block. A node's lowest bit is its control bit.
//
// A node has two words. The nodes of a level are the first words of a table's vector: their children
// replace them, and last the entries of the vector replace the leaves.
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

/// The trees of `count` tables at a level, with 2^level nodes each.
///
/// Nodes are hashed under keys derived from `base`, one for each level of 64 tables.
struct Trees {
  unsigned level;
  std::size_t count;
  Block base;

  std::size_t nodes() const { return std::size_t{1} << level; }
};

/// Writes the XOR of the hashes of each table's nodes, two words, one after the other.
///
/// Throws Error(argument) for a level that no tree has, or words that are too few.
void sum_hashes(const Trees& trees, const Words<const std::uint64_t>& nodes, std::uint64_t* sums,
                ThreadPool& pool, Tier tier);

/// Replaces nodes by their children, twice as many. A correction, two words, is added to the children
/// of a table's nodes whose control bit is 1. Throws as sum_hashes does.
void grow_trees(const Trees& trees, const std::uint64_t* corrections,
                const Words<std::uint64_t>& nodes, ThreadPool& pool, Tier tier);

/// Replaces leaves by shares of the vector's entries, with corrections as in grow_trees.
void grow_leaves(const Trees& trees, const std::uint64_t* corrections,
                 const Words<std::uint64_t>& nodes, ThreadPool& pool, Tier tier);

}  // namespace nescio::lut
