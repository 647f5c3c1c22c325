#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "ot/tree.h"
#include "ot/tree_walk.h"

namespace nescio::ot {
namespace {

/// Leaves of the trees of one task.
constexpr std::size_t kTaskLeaves = std::size_t{1} << 16;

class Grower {
 public:
  Grower(const TreeKernels& kernels, unsigned depth, Block delta)
      : kernels_(kernels),
        depth_(depth),
        delta_(delta),
        walk_(kernels, depth),
        nodes_(kMostGroup << kNarrow),
        children_(kMostGroup << kNarrow) {}

  void grow(const Block* seeds, std::size_t trees, Block* leaves, Block* sums) {
    std::fill_n(sums, trees * depth_, Block{});
    for (std::size_t tree = 0; tree < trees; ++tree) {
      sums[tree * depth_] = seeds[tree];
      nodes_[2 * tree] = seeds[tree];
      nodes_[2 * tree + 1] = seeds[tree] ^ delta_;
    }
    if (depth_ == 1) {
      for (std::size_t i = 0; i < 2 * trees; ++i) leaves[i] = cleared(nodes_[i]);
      return;
    }
    const auto [level, nodes] = expand_narrow(trees, sums);
    for (std::size_t tree = 0; tree < trees; ++tree) {
      walk_.descend(level, nodes + (tree << level), std::size_t{1} << level,
                    leaves + (tree << depth_), sums + tree * depth_);
    }
  }

 private:
  /// Expands the first levels of all trees together; returns the level come to, and its nodes.
  std::pair<unsigned, const Block*> expand_narrow(std::size_t trees, Block* sums) {
    Block *nodes = nodes_.data(), *children = children_.data();
    unsigned level = 1;
    for (; level + 1 < depth_ && level < kNarrow; ++level) {
      const std::size_t width = std::size_t{1} << level;
      kernels_.expand(nodes, trees * width, children);
      for (std::size_t tree = 0; tree < trees; ++tree) {
        sums[tree * depth_ + level] = xor_of_left(children + 2 * tree * width, width);
      }
      std::swap(nodes, children);
    }
    return {level, nodes};
  }

  const TreeKernels& kernels_;
  unsigned depth_;
  Block delta_;
  Walk walk_;
  SecretBuffer<Block> nodes_, children_;
};

}  // namespace

void grow_trees(std::span<const Block> seeds, unsigned depth, Block delta, Block* leaves,
                Block* sums, ThreadPool& pool, Tier tier) {
  check_depth(depth);
  const std::size_t group = trees_of_task(seeds.size(), depth, kTaskLeaves, pool.threads());
  std::vector<std::optional<Grower>> growers(pool.threads());
  pool.run((seeds.size() + group - 1) / group, [&](std::size_t task, unsigned worker) {
    if (!growers[worker]) growers[worker].emplace(tree_kernels(tier), depth, delta);
    const std::size_t first = task * group, count = std::min(group, seeds.size() - first);
    growers[worker]->grow(seeds.data() + first, count, leaves + (first << depth),
                          sums + first * depth);
  });
}

}  // namespace nescio::ot
