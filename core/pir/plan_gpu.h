#pragma once

// How a batch is answered on a GPU: what there is to choose, and the choices, in one place.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "dpf/lines.h"
#include "gpu/device.h"

namespace nescio::pir {

/// Ways to walk the keys' trees. `automatic` is ours; the others are those that the paper compares
/// ("GPU-based Private Information Retrieval for On-Device Machine Learning Inference", 2024,
/// sections 3.2.2 to 3.2.5), for comparison here.
enum class Strategy : std::uint8_t {
  automatic,    ///< a slab of all trees level by level, its shares, their product; the next slab
  branch,       ///< as automatic, but every leaf from the root anew
  level,        ///< the trees whole, level by level; then all shares; then the product
  bounded,      ///< a block a key, some nodes at a time, fused with the product
  cooperative,  ///< one key after the other, each by the whole card, fused with the product
};

inline constexpr std::string_view kStrategies[] = {"auto", "branch", "level", "bounded",
                                                   "cooperative"};

/// Throws Error(argument), listing the names there are, if `name` is none of them.
inline Strategy parse_strategy(std::string_view name) {
  std::string names;
  for (std::size_t i = 0; i < std::size(kStrategies); ++i) {
    if (name == kStrategies[i]) return static_cast<Strategy>(i);
    names += (i == 0 ? "" : ", ") + std::string(kStrategies[i]);
  }
  throw Error(ErrorKind::argument,
              "there is no strategy '" + std::string(name) + "'; there are: " + names);
}

/// How the product is made.
enum class Product : std::uint8_t {
  plain,   ///< without matrix instructions
  narrow,  ///< matrix tiles of 16 x 256: all that counts is to read the table
  middle,  ///< of 64 x 128
  wide,    ///< of 128 x 128
};

struct GpuPlan {
  /// Nodes of a level that a bounded walk expands at a time: the paper's K, which it sets to 128.
  static constexpr unsigned kRun = 128;
  static constexpr unsigned kLeastRun = 64;
  static constexpr unsigned kMostRun = 512;

  /// Bytes of sums a pass, which bound the keys that are answered together.
  static constexpr std::size_t kSumBytes = std::size_t{1} << 30;
  static constexpr std::size_t kMostKeys = 1 << 14;

  /// Blocks for each processor of the card: enough to hide each other's waits, few enough that the
  /// sums' atomics do not count.
  static constexpr std::uint64_t kBlocksPerProcessor = 4;

  std::size_t keys_per_pass;

  GpuPlan(std::size_t keys, std::size_t sum_bytes_per_key)
      : keys_per_pass(
            std::min({keys, kMostKeys, std::max<std::size_t>(1, kSumBytes / sum_bytes_per_key)})) {}

  /// Chunks of a slab: its nodes and lines stay in the second-level cache between the kernels.
  static std::uint64_t slab_chunks(const gpu::DeviceInfo& device, dpf::LineShape shape,
                                   std::size_t keys) {
    constexpr std::size_t kBytesPerLeaf = 64 + 16 + 16;  // its line, its node, the nodes above
    const std::uint64_t fit = device.cache_bytes / (keys * shape.leaves() * kBytesPerLeaf);
    // So many at least that a kernel has work for the whole card.
    const std::uint64_t least =
        gpu::parts(std::uint64_t{device.processors} * 1024, keys * shape.leaves());
    return std::bit_floor(std::max<std::uint64_t>({1, fit, least}));
  }

  /// Bytes of a level's nodes up to which it is grown for the whole shard at once.
  static std::size_t small_level(const gpu::DeviceInfo& device) { return device.cache_bytes / 8; }

  /// `rows` of the product: keys times planes.
  static Product product(const gpu::DeviceInfo& device, dpf::LineShape shape, std::uint64_t rows) {
    if (shape.bits() && device.capability < 80) return Product::plain;
    if (rows <= 16) return Product::narrow;
    return rows <= 64 ? Product::middle : Product::wide;
  }
};

/// What an answer took.
struct GpuWork {
  std::uint64_t expansions = 0;  ///< calls of the generator for children
  std::uint64_t leaves = 0;      ///< calls for a leaf
  std::uint64_t launches = 0;    ///< of kernels
  std::uint64_t peak_bytes = 0;  ///< of device memory beyond the table
};

}  // namespace nescio::pir
