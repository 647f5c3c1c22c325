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
static_assert(kNodes >= 1u << kMaxTreeLevels);

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
  Hasher(const Trees& trees, Tier tier) : trees_(trees), cipher_(prg::aes128::cipher_of(tier)) {}

  /// The tables whose nodes are hashed together: a part of a group.
  std::size_t tables() const { return std::min(kGroup, kNodes / trees_.nodes()); }

  /// Expands the key of a group.
  void select(std::size_t group) {
    cipher_.expand_keys(trees_.base, group << kLevelBits | trees_.level, 1, &key_);
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
  prg::aes128::Cipher cipher_;
  prg::aes128::RoundKeys key_;
  Block in_[kNodes], out_[kNodes];
};

void check(const Trees& trees, std::size_t words, std::size_t blocks) {
  if (trees.level == 0 || trees.level > kMaxTreeLevels) {
    throw Error(ErrorKind::argument, "a level of trees: found " + std::to_string(trees.level) +
                                         ", expected 1 to " + std::to_string(kMaxTreeLevels));
  }
  if (words < 2 * blocks) {
    throw Error(ErrorKind::argument, "words of a tree: found " + std::to_string(words) +
                                         ", expected at least " + std::to_string(2 * blocks));
  }
}

/// Calls work(table, hashes of its nodes) for each table.
template <class Work>
void for_tables(const Trees& trees, const Words<const std::uint64_t>& nodes, ThreadPool& pool,
                Tier tier, const Work& work) {
  const std::size_t tasks = (trees.count + kTaskTables - 1) / kTaskTables;
  pool.run(tasks, [&](std::size_t task, unsigned) {
    Hasher hasher(trees, tier);
    const std::size_t end = std::min(trees.count, (task + 1) * kTaskTables);
    for (std::size_t i = task * kTaskTables, count; i < end; i += count) {
      if (i % kGroup == 0) hasher.select(i / kGroup);
      count = std::min(hasher.tables(), end - i);
      const Block* hashes = hasher.hash(nodes, i, count);
      for (std::size_t k = 0; k < count; ++k) work(i + k, hashes + k * trees.nodes());
    }
  });
}

}  // namespace

void sum_hashes(const Trees& trees, const Words<const std::uint64_t>& nodes, std::uint64_t* sums,
                ThreadPool& pool, Tier tier) {
  check(trees, nodes.width, trees.nodes());
  for_tables(trees, nodes, pool, tier, [&](std::size_t table, const Block* hashes) {
    Block sum{};
    for (std::size_t j = 0; j < trees.nodes(); ++j) sum ^= hashes[j];
    store(sum, sums, table);
  });
}

void grow_trees(const Trees& trees, const std::uint64_t* corrections,
                const Words<std::uint64_t>& nodes, ThreadPool& pool, Tier tier) {
  check(trees, nodes.width, 2 * trees.nodes());
  const auto grow = [&](std::size_t table, const Block* hashes) {
    const Block correction = block_at(corrections, table);
    std::uint64_t* own = nodes[table];
    for (std::size_t j = trees.nodes(); j-- > 0;) {  // children are never below their parents
      const Block node = block_at(own, j);
      const Block left = hashes[j] ^ (correction & block_mask(control_bit(node)));
      store(left, own, 2 * j);
      store(left ^ node, own, 2 * j + 1);
    }
  };
  for_tables(trees, {nodes.data, nodes.width}, pool, tier, grow);
}

void grow_leaves(const Trees& trees, const std::uint64_t* corrections,
                 const Words<std::uint64_t>& nodes, ThreadPool& pool, Tier tier) {
  check(trees, nodes.width, trees.nodes());
  const auto grow = [&](std::size_t table, const Block* hashes) {
    const Block correction = block_at(corrections, table);
    std::uint64_t* own = nodes[table];
    for (std::size_t j = 0; j < trees.nodes(); ++j) {
      store(hashes[j] ^ (correction & block_mask(control_bit(block_at(own, j)))), own, j);
    }
  };
  for_tables(trees, {nodes.data, nodes.width}, pool, tier, grow);
}

}  // namespace nescio::lut
