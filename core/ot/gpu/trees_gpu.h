#pragma once

// Correlated GGM trees and their punctured copies (Guo, Yang, Wang, Zhang, Xie, Liu, Zhao,
// "Half-Tree", Eurocrypt 2023, cGGM) on a GPU:
//
//   H(x) = pi(sigma(x)) ^ sigma(x)                    pi: AES under the key of the tree and level of x
//                                                     (ot/keys.h); sigma: prg/aes128.h
//   level 1: seed, seed ^ delta                       every level XORs to delta
//   children of x: left H(x), right H(x) ^ x          one call of AES for two
//
// All trees are expanded one level at a time. The nodes of a level are stored tree after tree, with
// one thread per parent: neighbouring threads access neighbouring memory, and even a single tree
// occupies a large GPU (Gan, Yuki, Rogers, Ghodsi, "cuOT", section III-A). The threads that write
// the nodes also compute the XOR of a level's left nodes, or of the nodes on the receiver's chosen
// side.
//
// The punctured index of a tree is secret: nodes on its path are selected by masks at every node,
// and no address or branch depends on it.

#include "ot/gpu/threads_gpu.h"

namespace nescio::ot {

/// XORs the results of work(node) over the nodes of a level into `sums`, four words per tree, those
/// of neighbouring trees `stride` words apart. `level` is the level of the nodes.
template <gpu::ThreadBlock B, class Work>
NESCIO_DEVICE inline void sum_trees(B& block, const Tiles& tiles, unsigned level,
                                    std::uint32_t* shared, std::uint32_t* sums,
                                    std::uint64_t stride, const Work& work) {
  const bool narrow = std::uint64_t{1} << level < kAesThreads;  // several trees to a tile
  const unsigned width = level < 5 ? 1u << level : gpu::kWarp;
  const std::uint64_t end = tiles.first(block.x() + 1);
  Block sum = {0, 0};
  for (std::uint64_t tile = tiles.first(block.x()); tile < end; ++tile) {
    const std::uint64_t item = tile * kAesThreads + block.thread();
    if (item < tiles.items) sum ^= work(item);
    const std::uint64_t tree = item >> level;
    if (narrow) {
      sum = xor_lanes(block, sum, width);
      if (block.lane() % width == 0 && item < tiles.items) {
        atomic_xor_block(block, sums + tree * stride, sum);
      }
    } else if (tile + 1 == end || (item + kAesThreads) >> level != tree) {
      xor_threads(block, sum, shared, sums + tree * stride);
    } else {
      continue;  // the next tile is of the same tree
    }
    sum = {0, 0};
  }
}

/// Writes level 1 of trees and the sum of its left nodes, one thread per tree. For punctured trees
/// both are zero.
struct StartTrees : PlainKernel {
  const Block* seeds;  ///< null for punctured trees
  Block delta;
  unsigned depth;
  Block* nodes;
  std::uint32_t* sums;

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const std::uint64_t tree = item(block);
    if (tree >= items) return;
    const Block leaf_mask = {depth == 1 ? ~std::uint64_t{1} : ~std::uint64_t{0}, ~std::uint64_t{0}};
    const Block left = seeds != nullptr ? seeds[tree] : Block{0, 0};
    const Block right = seeds != nullptr ? left ^ delta : Block{0, 0};
    nodes[2 * tree] = left & leaf_mask;
    nodes[2 * tree + 1] = right & leaf_mask;
    for (unsigned word = 0; word < kBlockWords; ++word) {
      sums[tree * depth * kBlockWords + word] = word_of(left, word);
    }
  }
};

/// The receiver's inputs for its trees.
struct Puncture {
  const Block* sides;  ///< `depth` per tree: the XOR of a level's nodes off the path's side
  const std::uint32_t* alphas;  ///< the index of the punctured leaf of each tree

  /// The sibling of the path's node at level l + 1 of a tree, from the sum of the other nodes of
  /// its side. `item` is tree * depth + l.
  NESCIO_DEVICE Block sibling(const std::uint32_t* sums, std::uint64_t item) const {
    return sides[item] ^ block_of(sums + item * kBlockWords);
  }
};

/// Expands the nodes of a level, one thread per parent. On the last level the lowest bit of each
/// child is cleared.
template <bool punctured>
struct GrowLevel : AesKernel {
  const prg::AesColumns* keys;  ///< `depth` per tree
  unsigned level;               ///< of the parents, 1 to depth - 1
  unsigned depth;
  const Block* parents;
  Block* children;
  std::uint32_t* sums;  ///< `depth` blocks per tree; null if SumLevel sums this level
  Puncture puncture;

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const prg::AesGpu cipher = aes(block);
    if (!punctured && sums == nullptr) {
      for_each_item(block, tiles, [&](std::uint64_t id) { grow(cipher, id); });
      return;
    }
    sum_trees(block, tiles, level, xor_scratch(block), sums + level * kBlockWords,
              std::uint64_t{depth} * kBlockWords,
              [&](std::uint64_t id) { return grow(cipher, id); });
  }

 private:
  /// Writes the children of a node and returns the child on the side that is summed.
  NESCIO_DEVICE Block grow(const prg::AesGpu& cipher, std::uint64_t id) const {
    Block x = parents[id];
    Block known = {~std::uint64_t{0}, ~std::uint64_t{0}}, right_side = {0, 0};
    if constexpr (punctured) {
      const std::uint64_t tree = id >> level, node = id & ((std::uint64_t{1} << level) - 1);
      const std::uint32_t path = puncture.alphas[tree] >> (depth - level - 1);  // of the children
      known = block_mask(1 - equal_bit(node, path >> 1));
      right_side = block_mask(1 - (path & 1));
      // The nodes of the path and its sibling are zero in memory.
      x ^= block_mask(equal_bit(node, (path >> 1) ^ 1)) &
           puncture.sibling(sums, tree * depth + level - 1);
    }
    const Block s = {x.hi, x.hi ^ x.lo};
    const Block left = (cipher.encrypt(keys[(id >> level) * depth + level], s) ^ s) & known;
    const Block right = left ^ x;  // x is zero for the node of the path
    const bool leaves = level + 1 == depth && sums != nullptr;
    const Block leaf_mask = {leaves ? ~std::uint64_t{1} : ~std::uint64_t{0}, ~std::uint64_t{0}};
    children[2 * id] = left & leaf_mask;
    children[2 * id + 1] = right & leaf_mask;
    return left ^ (x & right_side);
  }
};

/// Sums the left nodes of a level in a separate pass, one thread per parent. `level` is the level
/// of the parents. The lowest bits of leaves are cleared after they are summed.
struct SumLevel : AesKernel {
  unsigned level;
  unsigned depth;
  Block* children;
  std::uint32_t* sums;

  std::size_t shared_bytes() const { return kXorScratchBytes; }

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    sum_trees(block, tiles, level, reinterpret_cast<std::uint32_t*>(block.shared()),
              sums + level * kBlockWords, std::uint64_t{depth} * kBlockWords,
              [&](std::uint64_t id) { return read(children + 2 * id); });
  }

 private:
  NESCIO_DEVICE Block read(Block* both) const {
    const Block left = both[0];
    if (level + 1 == depth) {
      both[0].lo &= ~std::uint64_t{1};
      both[1].lo &= ~std::uint64_t{1};
    }
    return left;
  }
};

/// Computes the two missing leaves of each punctured tree: the sibling of the punctured leaf, and
/// the XOR of all other leaves, which takes the place of the punctured leaf. The children of a node
/// XOR to it. So the known nodes of a level XOR to those of the level above and the sibling of the
/// path's node, and all leaves XOR to all siblings of the path.
struct RecoverLeaves : PlainKernel {
  unsigned depth;
  const std::uint32_t* sums;
  Puncture puncture;
  Block* missing;  ///< two per tree

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const std::uint64_t tree = item(block);
    if (tree >= items) return;
    Block sibling = {0, 0}, all = {0, 0};
    for (unsigned l = 0; l < depth; ++l) {
      sibling = puncture.sibling(sums, tree * depth + l);
      all ^= sibling;
    }
    missing[2 * tree] = {sibling.lo & ~std::uint64_t{1}, sibling.hi};
    missing[2 * tree + 1] = {all.lo | 1, all.hi};
  }
};

/// XORs the missing leaves into their positions, which are zero, one thread per leaf.
struct StoreMissingLeaves : PlainKernel {
  unsigned depth;
  const std::uint32_t* alphas;
  const Block* missing;
  Block* leaves;

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const std::uint64_t id = item(block);
    if (id >= items) return;
    const std::uint64_t tree = id >> depth, leaf = id & ((std::uint64_t{1} << depth) - 1);
    const std::uint32_t alpha = alphas[tree];
    leaves[id] = leaves[id] ^ (missing[2 * tree] & block_mask(equal_bit(leaf, alpha ^ 1))) ^
                 (missing[2 * tree + 1] & block_mask(equal_bit(leaf, alpha)));
  }
};

}  // namespace nescio::ot
