#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/secret.h"
#include "ot/trees/tree.h"
#include "ot/trees/walk.h"

namespace nescio::ot {
namespace {

/// Trees up to depth kMaxShallowDepth are expanded level by level. In deeper trees, the subtrees of
/// height kSubtreeHeight that are off the path are expanded depth-first, one after the other. The
/// subtree on the path, which needs the sums of all others, is expanded last.
constexpr unsigned kMaxShallowDepth = 13, kSubtreeHeight = 10;

/// Leaves of the trees of one task: with their levels they fit in the private cache of a core.
constexpr std::size_t kTaskLeaves = std::size_t{1} << 13;

constexpr std::array<Block, kMaxDepth> kZeros{};

/// The path in one tree to the punctured leaf.
class Path {
 public:
  /// Goes down one level. `side` is the XOR of the new level's nodes on the chosen side, `left` the
  /// XOR of its known left nodes, which are all but those below the path.
  ///
  /// A right node is the left node XOR the parent, so that the XOR of the known right nodes follows
  /// from that of the known parents. This gives one of the two nodes below the path; the path goes
  /// on to the other.
  void step(Block side, std::uint8_t choice, Block left) {
    right_ = block_mask(choice & 1);
    sibling_ = side ^ left ^ (right_ & known_);
    known_ ^= sibling_;
    const Block left_node = blend(right_, Block{}, sibling_), right_node = sibling_ & right_;
    pair_ = {index_, {left_node, right_node}};
    index_ = 2 * index_ + (~right_.lo & 1);
  }

  /// The path's node, held as zero, and its sibling.
  const Pair& pair() const { return pair_; }

  /// The punctured leaf, which is the XOR of all others with the lowest bit set, and its sibling
  /// with the lowest bit cleared.
  Pair leaves() const {
    const Block sibling = clear_low_bit(sibling_), own = {known_.lo | 1, known_.hi};
    return {pair_.index, {blend(right_, own, sibling), blend(right_, sibling, own)}};
  }

  /// Enters the subtree below the path's node: positions are relative to it from now on. Returns
  /// the position of that node.
  std::uint64_t enter_subtree() { return std::exchange(index_, 0); }

 private:
  static Block blend(Block mask, Block a, Block b) { return b ^ (mask & (a ^ b)); }

  std::uint64_t index_ = 0;
  Block right_{}, sibling_{}, known_{};
  Pair pair_{};
};

/// Punctures a group of trees together, one level of all trees at a time, to hide latencies.
class Puncturer {
 public:
  Puncturer(Tier tier, unsigned depth, std::size_t group, Block base)
      : kernels_(tree_kernels(tier)),
        depth_(depth),
        top_(depth > kMaxShallowDepth ? depth - kSubtreeHeight : 0),
        keys_(group, TreeKeys(tier, base, depth)),
        paths_(group),
        nodes_(group << std::max(depth - top_, top_) >> 1),
        children_(nodes_.size()),
        roots_(top_ == 0 ? 0 : std::size_t{1} << top_),
        subtree_(top_ == 0 ? 0 : std::size_t{1} << kSubtreeHeight) {
    if (top_ > 0) walk_.emplace(kernels_, depth);
  }

  /// `sides` and `choices` have `depth` items per tree. A group of deep trees has one tree.
  void puncture(std::uint64_t first_tree, std::size_t trees, const Block* sides,
                const std::uint8_t* choices, Block* leaves) {
    for (std::size_t tree = 0; tree < trees; ++tree) {
      keys_[tree].select_tree(first_tree + tree);
      paths_[tree] = Path{};
    }
    const Inputs known = {sides, choices};
    if (top_ > 0) return puncture_deep(known, leaves);
    expand_levels(known, trees, 0, depth_, kZeros.data(), leaves);
    for (std::size_t tree = 0; tree < trees; ++tree) {
      kernels_.store_pair(leaves + (tree << depth_), std::size_t{1} << depth_,
                          paths_[tree].leaves());
    }
  }

 private:
  /// The receiver's inputs for some trees, `depth_` items per tree.
  struct Inputs {
    const Block* sides;
    const std::uint8_t* choices;
  };

  void puncture_deep(Inputs known, Block* leaves) {
    const std::size_t parts = std::size_t{1} << top_, part = std::size_t{1} << kSubtreeHeight;
    expand_levels(known, 1, 0, top_, kZeros.data(), roots_.data());
    kernels_.store_pair(roots_.data(), parts, paths_[0].pair());
    // The path's node is held as zero; adding its contribution a second time cancels it.
    std::array<Block, kMaxDepth> others{};
    const Block zero{};
    walk_->descend(keys_[0], top_, &zero, 1, subtree_.data(), others.data());
    walk_->descend(keys_[0], top_, roots_.data(), parts, leaves, others.data());
    const std::uint64_t place = paths_[0].enter_subtree();
    expand_levels(known, 1, top_, kSubtreeHeight, others.data(), subtree_.data());
    kernels_.store_pair(subtree_.data(), part, paths_[0].leaves());
    kernels_.store_part(leaves, parts, part, place, subtree_.data());
  }

  /// Expands `height` levels below the path's node on level `top`. others[l] is the XOR of the left
  /// nodes of level l + 1 outside the subtree of that node. Writes the nodes of the lowest level,
  /// with lowest bits cleared if they are leaves; the caller has to store the pairs of the paths.
  void expand_levels(Inputs known, std::size_t trees, unsigned top, unsigned height,
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
      for (std::size_t tree = 0; tree < trees; ++tree) {
        const Block left = expand(nodes + tree * width, tree, width, level, children);
        step(tree, level, left ^ hash_of_zero(tree, level));
        children += 2 * width;
      }
      std::swap(nodes, spare);
    }
  }

  Block expand(const Block* nodes, std::size_t tree, std::size_t width, unsigned level,
               Block* children) {
    const auto kernel =
        level + 1 == depth_ ? kernels_.expand_last_with_pair : kernels_.expand_with_pair;
    return kernel(keys_[tree][level], nodes, width, paths_[tree].pair(), children);
  }

  /// H(0): the contribution of the path's node, held as zero, to the sum of the left nodes.
  Block hash_of_zero(std::size_t tree, unsigned level) const {
    Block children[2];
    const Block zero{};
    return kernels_.expand(keys_[tree][level], &zero, 1, children);
  }

  const TreeKernels& kernels_;
  unsigned depth_, top_;
  std::vector<TreeKeys> keys_;
  SecretBuffer<Path> paths_;
  SecretBuffer<Block> nodes_, children_;

  // For deep trees: the expansion off the path, the nodes it starts from, and the subtree on the
  // path.
  std::optional<Walk> walk_;
  SecretBuffer<Block> roots_, subtree_;
};

/// Throws unless every choice is 0 or 1. Nothing else depends on them.
void check_choices(std::span<const std::uint8_t> choices) {
  unsigned all = 0;
  for (std::uint8_t choice : choices) all |= choice;
  if (declassify(all > 1)) {
    throw Error(ErrorKind::argument, "choices: found a byte above 1, expected only 0 and 1");
  }
}

}  // namespace

void check_depth(unsigned depth) {
  if (depth >= 1 && depth <= kMaxDepth) return;
  throw Error(ErrorKind::argument, "depth of a tree: found " + std::to_string(depth) +
                                       ", expected 1 to " + std::to_string(kMaxDepth));
}

void puncture_trees(std::span<const Block> sides, std::span<const std::uint8_t> choices,
                    unsigned depth, TreeBase keys, Block* leaves, ThreadPool& pool, Tier tier) {
  check_depth(depth);
  check_choices(choices);
  const std::size_t trees = choices.size() / depth;
  const std::size_t group = trees_per_task(trees, depth, kTaskLeaves, pool.threads());
  std::vector<std::optional<Puncturer>> puncturers(pool.threads());
  pool.run((trees + group - 1) / group, [&](std::size_t task, unsigned worker) {
    if (!puncturers[worker]) puncturers[worker].emplace(tier, depth, group, keys.base);
    const std::size_t first = task * group, count = std::min(group, trees - first);
    puncturers[worker]->puncture(keys.first_tree + first, count, sides.data() + first * depth,
                                 choices.data() + first * depth, leaves + (first << depth));
  });
}

}  // namespace nescio::ot
