#include "dpf/evaluate.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/math.h"
#include "dpf/shares.h"
#include "ggm/walk.h"

namespace nescio::dpf {
namespace {

constexpr std::uint64_t kLeafBits = 8 * prg::kLeafBytes;

/// Chunks of the walk per task: enough to make the cost of seeking to the first negligible.
constexpr std::uint64_t kChunksPerTask = 8;

/// Keys with fewer leaves than this are walked together, to fill the generator's kernels.
constexpr std::uint64_t kFewLeaves = 64;
constexpr std::size_t kKeysPerTask = 64;

/// The range start..stop-1 of a share vector, and the memory for its shares.
struct BitRange {
  std::uint64_t start;
  std::uint64_t stop;
  std::uint8_t* out;

  std::uint64_t first_leaf() const { return start / kLeafBits; }
  std::uint64_t last_leaf() const { return ceil_div(stop, kLeafBits); }
  std::uint8_t* at(std::uint64_t bit) const { return out + (bit - start) / 8; }
  bool holds(std::uint64_t leaf) const {
    return leaf * kLeafBits >= start && (leaf + 1) * kLeafBits <= stop;
  }

  /// Copies the part of leaf `leaf` that is inside the range.
  void copy(std::uint64_t leaf, const Leaf& shares) const {
    const std::uint64_t from = std::max(start, leaf * kLeafBits);
    const std::uint64_t to = std::min(stop, (leaf + 1) * kLeafBits);
    if (from >= to) return;
    const std::uint64_t bytes = (to - from + 7) / 8;
    const auto* raw = reinterpret_cast<const std::uint8_t*>(shares.data());
    std::memcpy(at(from), raw + from % kLeafBits / 8, bytes);
    if (to % 8 != 0) at(from)[bytes - 1] &= static_cast<std::uint8_t>((1u << (to % 8)) - 1);
  }
};

/// Evaluates one key's nodes into the range: whole leaves in place, the leaves at its ends through a
/// copy.
void write_nodes(const LeafShares& shares, std::size_t key, const ggm::Nodes& nodes,
                 const BitRange& range) {
  constexpr std::size_t kPart = 16;
  Leaf part[kPart];
  for (std::size_t i = 0; i < nodes.per_tree;) {
    const std::uint64_t leaf = nodes.first + i;
    const Block* from = nodes.data + i;
    auto* const to = reinterpret_cast<Block*>(range.at(leaf * kLeafBits));
    const bool aligned = reinterpret_cast<std::uintptr_t>(to) % alignof(Block) == 0;
    const std::size_t left = nodes.per_tree - i;
    if (aligned && range.holds(leaf)) {
      const auto whole = std::min<std::uint64_t>(left, range.stop / kLeafBits - leaf);
      shares.write(key, 1, from, whole, to);
      i += whole;
      continue;
    }
    const std::size_t some = aligned ? 1 : std::min(left, kPart);
    shares.write(key, 1, from, some, part[0].data());
    for (std::size_t k = 0; k < some; ++k) range.copy(leaf + k, part[k]);
    i += some;
  }
}

/// Many leaves: one key at a time, its chunks divided among the threads.
void evaluate_large(const Keys& keys, const BitRange& range, std::size_t stride, ThreadPool& pool,
                    Tier tier) {
  const LeafShares shares(keys, tier);
  const std::uint64_t chunk = ggm::Walk(keys.forest(0, 1, tier)).chunk();
  const std::uint64_t task_leaves = kChunksPerTask * chunk;
  const std::uint64_t first_task = range.first_leaf() / task_leaves;
  const std::uint64_t tasks = ceil_div(range.last_leaf(), task_leaves) - first_task;
  pool.run(keys.size() * tasks, [&](std::size_t task, unsigned) {
    const std::size_t key = task / tasks;
    const BitRange own = {range.start, range.stop, range.out + key * stride};
    const std::uint64_t begin = (first_task + task % tasks) * task_leaves;
    const std::uint64_t end = std::min(begin + task_leaves, own.last_leaf());
    ggm::Walk walk(keys.forest(key, 1, tier));
    for (std::uint64_t leaf = std::max(begin, own.first_leaf()); leaf < end;) {
      const std::uint64_t next = std::min(end, (leaf / chunk + 1) * chunk);
      write_nodes(shares, key, walk.nodes(leaf, next), own);
      leaf = next;
    }
  });
}

/// Few leaves: several keys together, the whole domain of each.
void evaluate_small(const Keys& keys, const BitRange& range, std::size_t stride, ThreadPool& pool,
                    Tier tier) {
  const LeafShares shares(keys, tier);
  const std::size_t tasks = ceil_div(keys.size(), kKeysPerTask);
  pool.run(tasks, [&](std::size_t task, unsigned) {
    const std::size_t first = task * kKeysPerTask;
    const std::size_t count = std::min(kKeysPerTask, keys.size() - first);
    ggm::Walk walk(keys.forest(first, count, tier));
    const ggm::Nodes nodes = walk.nodes(0, keys.shape().leaves());
    Buffer<Leaf> leaves(count * nodes.per_tree);
    shares.write(first, count, nodes.data, nodes.per_tree, leaves[0].data());
    for (std::size_t i = 0; i < count; ++i) {
      const BitRange own = {range.start, range.stop, range.out + (first + i) * stride};
      for (std::uint64_t leaf = own.first_leaf(); leaf < own.last_leaf(); ++leaf) {
        own.copy(leaf, leaves[i * nodes.per_tree + leaf]);
      }
    }
  });
}

/// Walks some points of one key down the tree together: each level expands all nodes, and each point
/// keeps the child on its path.
class PointWalk {
 public:
  static constexpr std::size_t kPoints = 256;

  PointWalk(const Keys& keys, std::size_t key, Tier tier)
      : shape_(keys.shape()),
        key_(key),
        forest_(keys.forest(key, 1, tier)),
        shares_(keys, tier),
        nodes_(kPoints),
        children_(kPoints * prg::kMaxArity) {}

  void evaluate(std::span<const std::uint64_t> points, std::uint8_t* out) {
    const unsigned leaf_bits = leaf_element_bits(shape_.output);
    const unsigned radix_bits = forest_.generator->radix_bits;
    std::fill_n(nodes_.data(), points.size(), *forest_.roots);
    for (unsigned level = 0; level < forest_.depth; ++level) {
      forest_.generator->expand(nodes_.data(), points.size(), forest_.at(level, 0),
                                children_.data());
      for (std::size_t i = 0; i < points.size(); ++i) {
        const std::uint64_t path =
            (points[i] >> leaf_bits) >> (radix_bits * (forest_.depth - 1 - level));
        nodes_[i] = children_[(i << radix_bits) | (path & (forest_.generator->arity() - 1))];
      }
    }
    shares_.write(key_, 1, nodes_.data(), points.size(), children_.data());
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto* leaf = reinterpret_cast<const std::uint8_t*>(&children_[prg::kLeafBlocks * i]);
      write_element(leaf, points[i] & ((std::uint64_t{1} << leaf_bits) - 1), i, out);
    }
  }

 private:
  void write_element(const std::uint8_t* leaf, std::uint64_t element, std::size_t i,
                     std::uint8_t* out) const {
    if (shape_.output == Output::bit) {
      out[i] = (leaf[element / 8] >> (element % 8)) & 1;
      return;
    }
    const std::size_t bytes = element_bits(shape_.output) / 8;
    std::memcpy(out + i * bytes, leaf + element * bytes, bytes);
  }

  Shape shape_;
  std::size_t key_;
  ggm::Forest forest_;
  LeafShares shares_;
  Buffer<Block> nodes_;
  Buffer<Block> children_;
};

}  // namespace

void check_range(const Shape& shape, std::uint64_t start, std::uint64_t stop) {
  if (start > stop || stop > shape.domain) {
    throw Error(ErrorKind::index, "range " + std::to_string(start) + " to " + std::to_string(stop) +
                                      " is outside the domain of " + std::to_string(shape.domain) +
                                      " points");
  }
  if (shape.output == Output::bit && start % 8 != 0) {
    throw Error(ErrorKind::argument,
                "packed bits start at a multiple of 8, not at " + std::to_string(start));
  }
}

std::size_t share_bytes(Output output, std::uint64_t count) {
  return (count * element_bits(output) + 7) / 8;
}

void evaluate_range(const Keys& keys, std::uint64_t start, std::uint64_t stop, std::uint8_t* out,
                    ThreadPool& pool, Tier tier) {
  if (keys.size() == 0) return;
  check_range(keys.shape(), start, stop);
  if (start == stop) return;
  const std::size_t stride = share_bytes(keys.shape().output, stop - start);
  const unsigned bits = element_bits(keys.shape().output);
  const bool few = keys.size() > 1 && keys.shape().leaves() < kFewLeaves;
  (few ? evaluate_small : evaluate_large)(keys, {start * bits, stop * bits, out}, stride, pool,
                                          tier);
}

void evaluate_points(const Keys& keys, std::span<const std::uint64_t> points, std::uint8_t* out,
                     ThreadPool& pool, Tier tier) {
  if (keys.size() == 0) return;
  const Shape& shape = keys.shape();
  for (std::uint64_t point : points) {
    if (point < shape.domain) continue;
    throw Error(ErrorKind::index, "point " + std::to_string(point) + " is outside the domain of " +
                                      std::to_string(shape.domain) + " points");
  }
  const std::size_t per_key = points.size() / keys.size();
  const std::size_t parts = ceil_div(per_key, PointWalk::kPoints);
  const std::size_t element_bytes = (element_bits(shape.output) + 7) / 8;
  pool.run(keys.size() * parts, [&](std::size_t task, unsigned) {
    const std::size_t key = task / parts, first = task % parts * PointWalk::kPoints;
    const std::size_t count = std::min(PointWalk::kPoints, per_key - first);
    PointWalk(keys, key, tier)
        .evaluate(points.subspan(key * per_key + first, count),
                  out + (key * per_key + first) * element_bytes);
  });
}

}  // namespace nescio::dpf
