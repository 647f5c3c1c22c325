#pragma once

// Correlated GGM trees and their punctured copies (Guo, Yang, Wang, Zhang, Xie, Liu, Zhao,
// "Half-Tree", Eurocrypt 2023, cGGM):
//
//   H(x) = pi(sigma(x)) ^ sigma(x)                    pi: AES under the key of the tree and level of x
//                                                     (ot/keys.h); sigma: prg/aes128.h
//   level 1: seed, seed ^ delta                       every level XORs to delta
//   children of x: left H(x), right H(x) ^ x          one call of AES for two
//
// The sender expands whole trees and computes the XOR of the left nodes of each level. The receiver
// learns, for each level, the XOR of the nodes on one side, by a secret choice. From these it
// computes all leaves but one, alpha; on each level the path to alpha takes the side that was not
// chosen. The receiver sets leaf alpha to the XOR of all its other leaves, which is the sender's
// leaf XOR delta. Finally the sender clears the lowest bit of every leaf; the receiver also does,
// but sets the lowest bit of leaf alpha. So v[i] ^ w[i] = (i == alpha) * delta, where delta is odd.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/block.h"
#include "base/cpu.h"
#include "base/thread_pool.h"

namespace nescio::ot {

inline constexpr unsigned kMaxDepth = 32;

/// Throws Error(argument) unless 1 <= depth <= kMaxDepth.
void check_depth(unsigned depth);

/// The keys under which trees are hashed: derived from `base`, starting with tree `first_tree`.
struct TreeBase {
  Block base;
  std::uint64_t first_tree;
};

/// Writes the 2^depth leaves of each tree and, to `sums`, the XOR of the left nodes of its levels 1
/// to depth. Both are contiguous per tree, in the order of the seeds.
void grow_trees(std::span<const Block> seeds, unsigned depth, Block delta, TreeBase keys,
                Block* leaves, Block* sums, ThreadPool& pool, Tier tier);

/// Writes the 2^depth leaves of each punctured tree. `sides` and `choices` have `depth` items per
/// tree: sides[l] is the XOR of the nodes of level l + 1 on side choices[l], where 0 is left.
/// Throws Error(argument) for a choice above 1. Time and addresses depend on sizes only.
void puncture_trees(std::span<const Block> sides, std::span<const std::uint8_t> choices,
                    unsigned depth, TreeBase keys, Block* leaves, ThreadPool& pool, Tier tier);

}  // namespace nescio::ot
