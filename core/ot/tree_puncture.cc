#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/secret.h"
#include "ot/tree.h"
#include "ot/tree_walk.h"

namespace nescio::ot {
namespace {

/// Trees up to depth kShallow are made level by level, each level of it in memory. In deeper ones the
/// subtrees of this height that are off the path are walked one after the other; the one on the path,
/// which needs the sums of all others, is made last.
constexpr unsigned kShallow = 13, kSubtree = 10;

/// Leaves of the trees of one task: with their levels they stay in a core's own cache.
constexpr std::size_t kTaskLeaves = std::size_t{1} << 13;

constexpr std::array<Block, kMostDepth> kZeros{};

/// H(0): what the node on the path, unknown and held as zero, adds to the left nodes' sum.
Block hash_of_zero(const TreeKernels& kernels) {
  Block children[2];
  const Block zero{};
  return kernels.expand(&zero, 1, children);
}

/// The way down one tree to the leaf that stays unknown.
class Path {
 public:
  /// Goes down a level. `side` is the XOR of the new level's nodes on the side of the choice, `left`
  /// that of its left nodes which are known so far: all but the two below the path.
  ///
  /// Right nodes are left ones XOR their parents, so the sum of the right ones follows from that of
  /// the known parents. One of the two nodes is then known; the other is where the path goes.
  void step(Block side, std::uint8_t choice, Block left) {
    right_ = block_mask(choice & 1);
    sibling_ = side ^ left ^ (right_ & known_);
    known_ ^= sibling_;
    const Block left_node = blend(right_, Block{}, sibling_), right_node = sibling_ & right_;
    pair_ = {place_, {left_node, right_node}};
    place_ = 2 * place_ + (~right_.lo & 1);
  }

  /// The two nodes below the path's last one: its sibling, and zero for itself.
  const Pair& pair() const { return pair_; }

  /// The two as leaves: lowest bits cleared, but set in the path's, the XOR of all others.
  Pair leaves() const {
    const Block sibling = cleared(sibling_), own = {known_.lo | 1, known_.hi};
    return {pair_.place, {blend(right_, own, sibling), blend(right_, sibling, own)}};
  }

  /// Counts places from the path's node on: in the subtree below it. Returns its place so far.
  std::uint64_t enter() { return std::exchange(place_, 0); }

 private:
  static Block blend(Block mask, Block a, Block b) { return b ^ (mask & (a ^ b)); }

  std::uint64_t place_ = 0;
  Block right_{}, sibling_{}, known_{};
  Pair pair_{};
};

class Puncturer {
 public:
  Puncturer(const TreeKernels& kernels, unsigned depth, std::size_t group)
      : kernels_(kernels),
        depth_(depth),
        top_(depth > kShallow ? depth - kSubtree : 0),
        zero_(hash_of_zero(kernels)),
        paths_(group),
        nodes_(group << std::max(depth - top_, top_) >> 1),
        children_(nodes_.size()),
        roots_(top_ == 0 ? 0 : std::size_t{1} << top_),
        subtree_(top_ == 0 ? 0 : std::size_t{1} << kSubtree) {
    if (top_ == 0) return;
    walk_.emplace(kernels, depth);
    const Block root{};
    walk_->descend(top_, &root, 1, subtree_.data(), empty_sums_.data());
  }

  void puncture(const Block* sides, const std::uint8_t* choices, std::size_t trees, Block* leaves) {
    const Knowledge known = {sides, choices};
    if (top_ == 0) return puncture_shallow(known, trees, leaves);
    for (std::size_t tree = 0; tree < trees; ++tree) {
      puncture_deep({sides + tree * depth_, choices + tree * depth_}, leaves + (tree << depth_));
    }
  }

 private:
  /// What is known of some trees, `depth_` items a tree.
  struct Knowledge {
    const Block* sides;
    const std::uint8_t* choices;
  };

  void puncture_shallow(Knowledge known, std::size_t trees, Block* leaves) {
    for (std::size_t tree = 0; tree < trees; ++tree) paths_[tree] = Path{};
    go_down(known, trees, 0, depth_, kZeros.data(), leaves);
    for (std::size_t tree = 0; tree < trees; ++tree) {
      kernels_.patch(leaves + (tree << depth_), std::size_t{1} << depth_, paths_[tree].leaves());
    }
  }

  void puncture_deep(Knowledge known, Block* leaves) {
    const std::size_t parts = std::size_t{1} << top_, part = std::size_t{1} << kSubtree;
    Path& path = paths_[0] = Path{};
    go_down(known, 1, 0, top_, kZeros.data(), roots_.data());
    kernels_.patch(roots_.data(), parts, path.pair());
    std::array<Block, kMostDepth> others = empty_sums_;
    walk_->descend(top_, roots_.data(), parts, leaves, others.data());
    const std::uint64_t place = path.enter();
    go_down(known, 1, top_, kSubtree, others.data(), subtree_.data());
    kernels_.patch(subtree_.data(), part, path.leaves());
    kernels_.place_part(leaves, parts, part, place, subtree_.data());
  }

  /// Goes `height` levels down from level `top`, where only the path's node is not yet in `others`:
  /// others[l] is the XOR of the left nodes of level l + 1 elsewhere. Writes the nodes of the level
  /// come to, with lowest bits cleared if it is the last; the paths' pairs are still to be put there.
  void go_down(Knowledge known, std::size_t trees, unsigned top, unsigned height,
               const Block* others, Block* out) {
    const auto step = [&](std::size_t tree, unsigned level, Block left) {
      const std::size_t item = tree * depth_ + level;
      paths_[tree].step(known.sides[item], known.choices[item], left ^ others[level]);
    };
    for (std::size_t tree = 0; tree < trees; ++tree) step(tree, top, Block{});
    Block *nodes = nodes_.data(), *spare = children_.data();
    std::fill_n(height == 1 ? out : nodes, 2 * trees, Block{});
    for (unsigned below = 1; below < height; ++below) {
      const unsigned level = top + below;
      const std::size_t width = std::size_t{1} << below;
      Block* children = below + 1 == height ? out : spare;
      const bool together = below < kNarrow && level + 1 < depth_;
      if (together) expand_together(nodes, trees, width, children);
      for (std::size_t tree = 0; tree < trees; ++tree) {
        Block* own = children + 2 * tree * width;
        const Block left = together ? xor_of_left(own, width)
                                    : expand(nodes + tree * width, tree, width, level, own);
        step(tree, level, left ^ zero_);
      }
      std::swap(nodes, spare);
    }
  }

  void expand_together(Block* nodes, std::size_t trees, std::size_t width, Block* children) {
    for (std::size_t tree = 0; tree < trees; ++tree) {
      kernels_.patch(nodes + tree * width, width, paths_[tree].pair());
    }
    kernels_.expand(nodes, trees * width, children);
  }

  Block expand(const Block* nodes, std::size_t tree, std::size_t width, unsigned level,
               Block* children) {
    const auto kernel =
        level + 1 == depth_ ? kernels_.expand_last_patched : kernels_.expand_patched;
    return kernel(nodes, width, paths_[tree].pair(), children);
  }

  const TreeKernels& kernels_;
  unsigned depth_, top_;
  Block zero_;
  SecretBuffer<Path> paths_;
  SecretBuffer<Block> nodes_, children_;

  // For deep trees: the walk off the path, the nodes it begins with, and the subtree on the path.
  std::optional<Walk> walk_;
  SecretBuffer<Block> roots_, subtree_;
  std::array<Block, kMostDepth> empty_sums_{};  // what the path's node, held as zero, adds
};

/// Throws unless every choice is 0 or 1; says nothing else of them.
void check_choices(std::span<const std::uint8_t> choices) {
  unsigned all = 0;
  for (std::uint8_t choice : choices) all |= choice;
  if (declassify(all > 1)) {
    throw Error(ErrorKind::argument, "choices: found a byte above 1, expected 0 or 1 each");
  }
}

}  // namespace

void check_depth(unsigned depth) {
  if (depth >= 1 && depth <= kMostDepth) return;
  throw Error(ErrorKind::argument, "the depth of a tree: found " + std::to_string(depth) +
                                       ", expected 1 to " + std::to_string(kMostDepth));
}

void puncture_trees(std::span<const Block> sides, std::span<const std::uint8_t> choices,
                    unsigned depth, Block* leaves, ThreadPool& pool, Tier tier) {
  check_depth(depth);
  check_choices(choices);
  const std::size_t trees = choices.size() / depth;
  const std::size_t group = trees_of_task(trees, depth, kTaskLeaves, pool.threads());
  std::vector<std::optional<Puncturer>> puncturers(pool.threads());
  pool.run((trees + group - 1) / group, [&](std::size_t task, unsigned worker) {
    if (!puncturers[worker]) puncturers[worker].emplace(tree_kernels(tier), depth, group);
    const std::size_t first = task * group, count = std::min(group, trees - first);
    puncturers[worker]->puncture(sides.data() + first * depth, choices.data() + first * depth,
                                 count, leaves + (first << depth));
  });
}

}  // namespace nescio::ot
