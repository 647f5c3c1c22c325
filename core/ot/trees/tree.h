#pragma once

// Correlated GGM trees and their punctured copies (Guo, Yang, Wang, Zhang, Xie, Liu, Zhao,
// "Half-Tree", Eurocrypt 2023, cGGM):
//
//   H(x) = pi(sigma(x)) ^ sigma(x)                    pi: AES under the key of the tree and level of x
//                                                     (ot/keys.h); sigma: prg/aes128.h
//   level 1: seed, seed ^ delta                       every level XORs to delta
//   children of x: left H(x), right H(x) ^ x          one call of AES for two
//
// The sender grows whole trees and learns, for each level, the XOR of its left nodes. Who knows of
// each level the XOR of one side's nodes, by a secret choice, makes all leaves but one: the path to it
// goes where the choices do not. Its own leaf is set to the XOR of all others, which is the sender's
// XOR delta. At the end the sender clears the lowest bit of its leaves, and the receiver sets that of
// its own leaf alone. So v[i] ^ w[i] = (i == alpha) * delta, where delta is odd.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/block.h"
#include "base/cpu.h"
#include "base/thread_pool.h"

namespace nescio::ot {

inline constexpr unsigned kMostDepth = 32;

/// Throws Error(argument) unless 1 <= depth <= kMostDepth.
void check_depth(unsigned depth);

/// The keys that trees are hashed under: those made from `base`, from that of tree `first_tree` on.
struct TreeBase {
  Block base;
  std::uint64_t first_tree;
};

/// Writes 2^depth leaves a tree, and the XOR of the left nodes of its levels 1 to depth. A tree's
/// results stand together, in the order of the seeds.
void grow_trees(std::span<const Block> seeds, unsigned depth, Block delta, TreeBase keys,
                Block* leaves, Block* sums, ThreadPool& pool, Tier tier);

/// Writes the 2^depth leaves of each punctured tree. `sides` and `choices` have `depth` items a tree:
/// item l is the XOR of the nodes of level l + 1 on side choices[l], 0 being the left one.
/// Throws Error(argument) for a choice above 1. Time and addresses depend on sizes only.
void puncture_trees(std::span<const Block> sides, std::span<const std::uint8_t> choices,
                    unsigned depth, TreeBase keys, Block* leaves, ThreadPool& pool, Tier tier);

}  // namespace nescio::ot
