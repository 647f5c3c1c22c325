#include "lut/tree.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "prg/aes128.h"

namespace nescio::lut {
namespace {

constexpr unsigned kLevelBits = 4;
static_assert(kMaxTreeLevels < 1u << kLevelBits);

/// Tables that share the keys of their levels, and those of a task.
constexpr std::size_t kGroup = 64;
constexpr std::size_t kTaskTables = 16 * kGroup;

/// Nodes that are hashed together.
constexpr std::size_t kNodes = 512;
static_assert(kNodes >= 1u << kMaxTreeLevels && 1u << kMaxTreeLevels <= 32);

constexpr Block sigma(Block s) { return {s.hi, s.hi ^ s.lo}; }

Block block_at(const std::uint64_t* words, std::size_t place) {
  return {words[2 * place], words[2 * place + 1]};
}

void store(Block block, std::uint64_t* words, std::size_t place) {
  words[2 * place] = block.lo;
  words[2 * place + 1] = block.hi;
}

/// Hashes the nodes of some tables: H(x) = pi(sigma(x)) ^ sigma(x).
class Hasher {
 public:
  Hasher(const Trees& trees, Block base, Tier tier)
      : trees_(trees), base_(base), cipher_(prg::aes128::cipher_of(tier)) {}

  /// The tables whose nodes are hashed together: a part of a group.
  std::size_t tables() const { return std::min(kGroup, kNodes / trees_.nodes()); }

  /// Expands the key of a group.
  void select(std::size_t group) {
    cipher_.expand_keys(base_, group << kLevelBits | trees_.level, 1, &key_);
  }

  /// Returns the hashes of the nodes of `count` tables, one after the other.
  const Block* hash(const Words<const std::uint64_t>& nodes, std::size_t first, std::size_t count) {
    Block* in = in_;
    for (std::size_t i = first; i < first + count; ++i) {
      for (std::size_t j = 0; j < trees_.nodes(); ++j) *in++ = sigma(block_at(nodes[i], j));
    }
    const std::size_t size = count * trees_.nodes();
    cipher_.encrypt(key_, in_, size, out_);
    for (std::size_t j = 0; j < size; ++j) out_[j] ^= in_[j];
    return out_;
  }

 private:
  const Trees& trees_;
  Block base_;
  prg::aes128::Cipher cipher_;
  prg::aes128::RoundKeys key_;
  Block in_[kNodes], out_[kNodes];
};

void check(const Trees& trees, std::size_t words) {
  if (trees.level == 0 || trees.level > kMaxTreeLevels) {
    throw Error(ErrorKind::argument, "a level of trees: found " + std::to_string(trees.level) +
                                         ", expected 1 to " + std::to_string(kMaxTreeLevels));
  }
  if (words < 2 * trees.blocks()) {
    throw Error(ErrorKind::argument, "words of a tree: found " + std::to_string(words) +
                                         ", expected at least " +
                                         std::to_string(2 * trees.blocks()));
  }
}

/// Calls work(first, end) for the tables of each task.
template <class Work>
void in_tasks(std::size_t count, ThreadPool& pool, const Work& work) {
  pool.run((count + kTaskTables - 1) / kTaskTables, [&](std::size_t task, unsigned) {
    work(task * kTaskTables, std::min(count, (task + 1) * kTaskTables));
  });
}

}  // namespace

void expand_trees(const Trees& trees, Block base, const Words<std::uint64_t>& nodes,
                  std::uint64_t* sums, std::uint32_t* controls, ThreadPool& pool, Tier tier) {
  check(trees, nodes.width);
  const auto expand = [&](std::size_t table, const Block* hashes) {
    std::uint64_t* own = nodes[table];
    Block sum{};
    std::uint32_t bits = 0;
    for (std::size_t j = trees.nodes(); j-- > 0;) {  // children are never below their parents
      const Block node = block_at(own, j);
      sum ^= hashes[j];
      bits = bits << 1 | static_cast<std::uint32_t>(control_bit(node));
      store(hashes[j], own, trees.are_leaves ? j : 2 * j);
      if (!trees.are_leaves) store(hashes[j] ^ node, own, 2 * j + 1);
    }
    store(sum, sums, table);
    controls[table] = bits;
  };
  in_tasks(trees.count, pool, [&](std::size_t first, std::size_t end) {
    Hasher hasher(trees, base, tier);
    for (std::size_t i = first, count; i < end; i += count) {
      if (i % kGroup == 0) hasher.select(i / kGroup);
      count = std::min(hasher.tables(), end - i);
      const Block* hashes = hasher.hash({nodes.data, nodes.width}, i, count);
      for (std::size_t k = 0; k < count; ++k) expand(i + k, hashes + k * trees.nodes());
    }
  });
}

void correct_trees(const Trees& trees, const std::uint64_t* corrections,
                   const std::uint32_t* controls, const Words<std::uint64_t>& nodes,
                   ThreadPool& pool) {
  check(trees, nodes.width);
  const unsigned each = trees.are_leaves ? 0 : 1;  // log2 of the blocks of a node
  in_tasks(trees.count, pool, [&](std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) {
      const Block correction = block_at(corrections, i);
      std::uint64_t* own = nodes[i];
      for (std::size_t j = 0; j < trees.blocks(); ++j) {
        const Block added = correction & block_mask(controls[i] >> (j >> each) & 1);
        store(block_at(own, j) ^ added, own, j);
      }
    }
  });
}

}  // namespace nescio::lut
