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
#include "prg/prg.h"

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

  /// Bytes of sums, and of shares, that bound the keys that are answered together.
  static constexpr std::size_t kRoomBytes = std::size_t{1} << 30;
  static constexpr std::size_t kMostKeys = 1 << 14;

  /// Chunks of a slab at least: fewer rows would not pay for adding up their sums.
  static constexpr std::uint64_t least_chunks(dpf::LineShape shape) {
    return (std::uint64_t{1} << 14) / shape.rows();
  }

  std::size_t keys_together;

  GpuPlan(std::size_t keys, dpf::LineShape shape, std::size_t sum_bytes_per_key) {
    const std::size_t share_bytes = least_chunks(shape) * shape.planes() * prg::kLeafBytes;
    const std::size_t room = kRoomBytes / std::max(sum_bytes_per_key, share_bytes);
    keys_together = std::min({keys, kMostKeys, std::max<std::size_t>(1, room)});
  }

  /// Chunks of a slab: its nodes and lines stay in the second-level cache between the kernels.
  static std::uint64_t slab_chunks(const gpu::DeviceInfo& device, dpf::LineShape shape,
                                   std::size_t keys) {
    constexpr std::size_t kBytesPerLeaf = 64 + 16 + 16;  // its line, its node, the nodes above
    const std::uint64_t fit = device.cache_bytes / (keys * shape.leaves() * kBytesPerLeaf);
    // So many at least that a kernel has work for the whole card.
    const std::uint64_t least =
        ceil_div(std::uint64_t{device.processors} * 1024, keys * shape.leaves());
    return std::bit_floor(std::max({least_chunks(shape), fit, least}));
  }

  /// Whether to take every leaf from the root: more calls, but one kernel instead of one a level, which
  /// is sooner done if a thread of the card has no more than a leaf.
  static bool from_roots(const gpu::DeviceInfo& device, std::uint64_t leaves) {
    return leaves <= std::uint64_t{device.processors} * 128;
  }

  /// Nodes that a block of the cooperative strategy turns into leaves: few enough to give every
  /// processor two blocks.
  static unsigned cooperative_run(const gpu::DeviceInfo& device, dpf::LineShape shape,
                                  std::uint64_t leaves) {
    const std::uint64_t even = std::bit_floor(leaves / (2 * device.processors) + 1);
    return static_cast<unsigned>(
        std::clamp<std::uint64_t>(even, shape.leaves(), std::uint64_t{kRun}));
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
