#include "dpf/evaluate.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "dpf/shares.h"
#include "ggm/walk.h"

namespace nescio::dpf {
namespace {

constexpr std::uint64_t kLeafBits = 8 * prg::kLeafBytes;

/// Chunks of the walk that one task takes: enough that finding the first costs nothing.
constexpr std::uint64_t kChunksPerTask = 8;

/// The bits start..stop-1 of a key's share vector, read leaf by leaf into bytes.
class RangeWriter {
 public:
  RangeWriter(std::uint64_t start_bit, std::uint64_t stop_bit, std::uint8_t* out)
      : start_(start_bit), stop_(stop_bit), out_(out) {}

  std::uint64_t first_leaf() const { return start_ / kLeafBits; }
  std::uint64_t last_leaf() const { return (stop_ + kLeafBits - 1) / kLeafBits; }

  /// Evaluates leaves first.. of `nodes` into the output, cutting those at the range's ends.
  void write(const Key& key, const prg::Generator& generator, std::uint64_t first,
             std::span<const Block> nodes) const {
    for (std::size_t i = 0; i < nodes.size();) {
      const std::uint64_t leaf = first + i;
      if (leaf * kLeafBits >= start_ && (leaf + 1) * kLeafBits <= stop_) {
        const auto whole = std::min<std::uint64_t>(nodes.size() - i, stop_ / kLeafBits - leaf);
        write_whole(key, generator, leaf, nodes.subspan(i, whole));
        i += whole;
      } else {
        write_cut(key, generator, leaf, nodes[i]);
        ++i;
      }
    }
  }

 private:
  /// The output may stand anywhere in memory; blocks may not.
  static bool aligned(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; }

  std::uint8_t* at(std::uint64_t bit) const { return out_ + (bit - start_) / 8; }

  void write_whole(const Key& key, const prg::Generator& generator, std::uint64_t leaf,
                   std::span<const Block> nodes) const {
    std::uint8_t* to = at(leaf * kLeafBits);
    if (aligned(to)) {
      leaf_shares(generator, key, nodes.data(), nodes.size(), reinterpret_cast<Block*>(to));
      return;
    }
    constexpr std::size_t kPart = 16;
    std::array<Leaf, kPart> part;
    for (std::size_t i = 0; i < nodes.size(); i += kPart) {
      const std::size_t count = std::min(kPart, nodes.size() - i);
      leaf_shares(generator, key, nodes.data() + i, count, part[0].data());
      std::memcpy(to + i * sizeof(Leaf), part.data(), count * sizeof(Leaf));
    }
  }

  void write_cut(const Key& key, const prg::Generator& generator, std::uint64_t leaf,
                 const Block& node) const {
    Leaf shares;
    leaf_shares(generator, key, &node, 1, shares.data());
    const std::uint64_t from = std::max(start_, leaf * kLeafBits);
    const std::uint64_t to = std::min(stop_, (leaf + 1) * kLeafBits);
    const std::uint64_t bytes = (to - from + 7) / 8;
    std::memcpy(at(from),
                reinterpret_cast<const std::uint8_t*>(shares.data()) + from % kLeafBits / 8, bytes);
    if (to % 8 != 0) at(from)[bytes - 1] &= static_cast<std::uint8_t>((1u << (to % 8)) - 1);
  }

  std::uint64_t start_;
  std::uint64_t stop_;
  std::uint8_t* out_;
};

void check_range(const Shape& shape, std::uint64_t start, std::uint64_t stop) {
  if (start > stop || stop > shape.domain) {
    throw Error(ErrorKind::index, "the range " + std::to_string(start) + " to " +
                                      std::to_string(stop) + " leaves the domain of " +
                                      std::to_string(shape.domain) + " points");
  }
  if (shape.output == Output::bit && start % 8 != 0) {
    throw Error(ErrorKind::argument,
                "packed bits start at a multiple of 8, not at " + std::to_string(start));
  }
}

void check_shapes(std::span<const Key> keys) {
  for (const Key& key : keys) {
    if (key.shape == keys[0].shape) continue;
    throw Error("the keys of one call have one shape", key.shape.describe(),
                keys[0].shape.describe());
  }
}

/// Points of one key, down the tree together: at each level all nodes are expanded and each keeps
/// the child on its own path.
class PointWalk {
 public:
  static constexpr std::size_t kPoints = 256;

  explicit PointWalk(const prg::Generator& generator)
      : generator_(generator),
        nodes_(kPoints),
        children_(kPoints * std::max<std::size_t>(generator.arity(), prg::kLeafBlocks)) {}

  void evaluate(const Key& key, std::span<const std::uint64_t> points, std::uint8_t* out) {
    const unsigned leaf_bits = leaf_element_bits(key.shape.output);
    const std::uint64_t elements = leaf_elements(key.shape.output);
    const unsigned radix_bits = generator_.radix_bits, depth = key.shape.depth();
    std::fill_n(nodes_.data(), points.size(), key.root);
    for (unsigned level = 0; level < depth; ++level) {
      const Block* corrections = &key.corrections[std::size_t{level} << radix_bits];
      generator_.expand(nodes_.data(), points.size(), corrections, children_.data());
      for (std::size_t i = 0; i < points.size(); ++i) {
        const std::uint64_t path = (points[i] >> leaf_bits) >> (radix_bits * (depth - 1 - level));
        nodes_[i] = children_[(i << radix_bits) | (path & (generator_.arity() - 1))];
      }
    }
    leaf_shares(generator_, key, nodes_.data(), points.size(), children_.data());
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto* leaf = reinterpret_cast<const std::uint8_t*>(&children_[prg::kLeafBlocks * i]);
      write_element(key.shape.output, leaf, points[i] & (elements - 1), i, out);
    }
  }

 private:
  static void write_element(Output output, const std::uint8_t* leaf, std::uint64_t element,
                            std::size_t i, std::uint8_t* out) {
    if (output == Output::bit) {
      out[i] = (leaf[element / 8] >> (element % 8)) & 1;
      return;
    }
    const std::size_t bytes = element_bits(output) / 8;
    std::memcpy(out + i * bytes, leaf + element * bytes, bytes);
  }

  const prg::Generator& generator_;
  Buffer<Block> nodes_;
  Buffer<Block> children_;
};

}  // namespace

std::size_t share_bytes(Output output, std::uint64_t count) {
  return (count * element_bits(output) + 7) / 8;
}

void evaluate_range(std::span<const Key> keys, std::uint64_t start, std::uint64_t stop,
                    std::uint8_t* out, ThreadPool& pool, Tier tier) {
  if (keys.empty()) return;
  check_shapes(keys);
  const Shape& shape = keys[0].shape;
  check_range(shape, start, stop);
  if (start == stop) return;
  const std::size_t stride = share_bytes(shape.output, stop - start);
  const unsigned bits = element_bits(shape.output);
  const RangeWriter range(start * bits, stop * bits, out);
  const std::uint64_t task_leaves = kChunksPerTask * ggm::Walk(keys[0].tree(tier)).chunk();
  const std::uint64_t first_task = range.first_leaf() / task_leaves;
  const std::uint64_t tasks = (range.last_leaf() + task_leaves - 1) / task_leaves - first_task;
  std::vector<ggm::Walk::Workspace> spaces(pool.threads());

  pool.run(keys.size() * tasks, [&](std::size_t task, unsigned worker) {
    const Key& key = keys[task / tasks];
    const RangeWriter writer(start * bits, stop * bits, out + task / tasks * stride);
    const std::uint64_t begin = (first_task + task % tasks) * task_leaves;
    const std::uint64_t end = std::min(begin + task_leaves, writer.last_leaf());
    ggm::Walk walk(key.tree(tier));
    for (std::uint64_t leaf = std::max(begin, writer.first_leaf()); leaf < end;) {
      const std::uint64_t next = std::min(end, (leaf / walk.chunk() + 1) * walk.chunk());
      writer.write(key, *key.tree(tier).generator, leaf, walk.nodes(leaf, next, spaces[worker]));
      leaf = next;
    }
  });
}

void evaluate_points(std::span<const Key> keys, std::span<const std::uint64_t> points,
                     std::uint8_t* out, ThreadPool& pool, Tier tier) {
  if (keys.empty()) return;
  check_shapes(keys);
  const Shape& shape = keys[0].shape;
  for (std::uint64_t point : points) {
    if (point < shape.domain) continue;
    throw Error(ErrorKind::index, "point " + std::to_string(point) + " is outside the domain of " +
                                      std::to_string(shape.domain) + " points");
  }
  const std::size_t per_key = points.size() / keys.size();
  const std::size_t parts = (per_key + PointWalk::kPoints - 1) / PointWalk::kPoints;
  const std::size_t element_bytes = (element_bits(shape.output) + 7) / 8;
  const prg::Generator& generator = prg::generator(shape.generator, tier);

  pool.run(keys.size() * parts, [&](std::size_t task, unsigned) {
    const std::size_t key = task / parts, first = task % parts * PointWalk::kPoints;
    const std::size_t count = std::min(PointWalk::kPoints, per_key - first);
    PointWalk(generator).evaluate(keys[key], points.subspan(key * per_key + first, count),
                                  out + (key * per_key + first) * element_bytes);
  });
}

}  // namespace nescio::dpf
