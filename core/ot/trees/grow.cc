#include <algorithm>
#include <optional>
#include <vector>

#include "ot/trees/tree.h"
#include "ot/trees/walk.h"

namespace nescio::ot {
namespace {

/// Leaves of the trees of one task.
constexpr std::size_t kTaskLeaves = std::size_t{1} << 16;

class Grower {
 public:
  Grower(Tier tier, unsigned depth, Block delta, Block base)
      : depth_(depth),
        delta_(delta),
        keys_(tier, base, depth),
        walk_(tree_kernels(tier), depth),
        nodes_(2) {}

  void grow(std::uint64_t tree, Block seed, Block* leaves, Block* sums) {
    std::fill_n(sums, depth_, Block{});
    sums[0] = seed;
    nodes_[0] = seed;
    nodes_[1] = seed ^ delta_;
    if (depth_ == 1) {
      for (std::size_t i = 0; i < 2; ++i) leaves[i] = clear_low_bit(nodes_[i]);
      return;
    }
    keys_.select_tree(tree);
    walk_.descend(keys_, 1, nodes_.data(), 2, leaves, sums);
  }

 private:
  unsigned depth_;
  Block delta_;
  TreeKeys keys_;
  Walk walk_;
  SecretBuffer<Block> nodes_;
};

}  // namespace

void grow_trees(std::span<const Block> seeds, unsigned depth, Block delta, TreeBase keys,
                Block* leaves, Block* sums, ThreadPool& pool, Tier tier) {
  check_depth(depth);
  const std::size_t group = trees_per_task(seeds.size(), depth, kTaskLeaves, pool.threads());
  std::vector<std::optional<Grower>> growers(pool.threads());
  pool.run((seeds.size() + group - 1) / group, [&](std::size_t task, unsigned worker) {
    if (!growers[worker]) growers[worker].emplace(tier, depth, delta, keys.base);
    const std::size_t end = std::min((task + 1) * group, seeds.size());
    for (std::size_t i = task * group; i < end; ++i) {
      growers[worker]->grow(keys.first_tree + i, seeds[i], leaves + (i << depth), sums + i * depth);
    }
  });
}

}  // namespace nescio::ot
