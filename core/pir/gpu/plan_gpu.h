#pragma once

// The choices for answering a batch on a GPU, all in one place.

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

/// Strategies for walking the keys' trees. `automatic` is Nescio's default; the others are the ones
/// compared in "GPU-based Private Information Retrieval for On-Device Machine Learning Inference" (2024,
/// sections 3.2.2 to 3.2.5).
enum class Strategy : std::uint8_t {
  automatic,    ///< slab by slab: all trees level by level, the shares, the product
  branch,       ///< as automatic, but every leaf is computed from the root
  level,        ///< whole trees level by level; then all shares; then the product
  bounded,      ///< one block per key, some nodes at a time, fused with the product
  cooperative,  ///< one key after the other, each on the whole GPU, fused with the product
};

inline constexpr std::string_view kStrategies[] = {"auto", "branch", "level", "bounded",
                                                   "cooperative"};

/// Returns the strategy with that name. Throws Error(argument) with all names if it does not exist.
inline Strategy parse_strategy(std::string_view name) {
  std::string names;
  for (std::size_t i = 0; i < std::size(kStrategies); ++i) {
    if (name == kStrategies[i]) return static_cast<Strategy>(i);
    names += (i == 0 ? "" : ", ") + std::string(kStrategies[i]);
  }
  throw Error(ErrorKind::argument,
              "strategy: found '" + std::string(name) + "', expected one of " + names);
}

/// Kernels for the product.
enum class Product : std::uint8_t {
  plain,   ///< without matrix instructions
  narrow,  ///< matrix tiles of 16 x 256: bound by reading the table
  middle,  ///< tiles of 64 x 128
  wide,    ///< tiles of 128 x 128
};

struct GpuPlan {
  /// Nodes of a level that a bounded walk expands at a time: K = 128 in the paper.
  static constexpr unsigned kRun = 128;
  static constexpr unsigned kMinRun = 64;
  static constexpr unsigned kMaxRun = 512;

  /// Maximum bytes of sums, and of shares, of the keys that are answered together.
  static constexpr std::size_t kGroupBytes = std::size_t{1} << 30;
  static constexpr std::size_t kMaxKeys = 1 << 14;

  /// Minimum rows of a slab: fewer do not amortize the addition of their sums. The blocks of a product
  /// fill the GPU once, so every slab adds the same number of sums: for words 4.2 million atomic
  /// additions of 64 bits on an H200, for bits as many bits, packed in words. Slabs for words are
  /// therefore larger, although their shares then leave the cache. On an H200, 2^14 rows take 1.5 times
  /// as long with u32.
  static constexpr std::uint64_t kBitRows = 1 << 14, kWordRows = 1 << 16;

  static constexpr std::uint64_t min_chunks(dpf::LineShape shape) {
    return (shape.bits() ? kBitRows : kWordRows) / shape.rows();
  }

  std::size_t keys_per_group;

  GpuPlan(std::size_t keys, dpf::LineShape shape, std::size_t sum_bytes_per_key) {
    const std::size_t share_bytes = min_chunks(shape) * shape.planes() * prg::kLeafBytes;
    const std::size_t fit = kGroupBytes / std::max(sum_bytes_per_key, share_bytes);
    keys_per_group = std::min({keys, kMaxKeys, std::max<std::size_t>(1, fit)});
  }

  /// Returns the chunks of a slab, whose nodes and lines fit in the second-level cache.
  static std::uint64_t slab_chunks(const gpu::DeviceInfo& device, dpf::LineShape shape,
                                   std::size_t keys) {
    constexpr std::size_t kBytesPerLeaf = 64 + 16 + 16;  // its line, its node, the nodes above
    const std::uint64_t fit = device.cache_bytes / (keys * shape.leaves() * kBytesPerLeaf);
    // Enough work for the whole GPU in a kernel.
    const std::uint64_t fill =
        ceil_div(std::uint64_t{device.processors} * 1024, keys * shape.leaves());
    return std::bit_floor(std::max({min_chunks(shape), fit, fill}));
  }

  /// Returns true if every leaf is to be computed from the root. This takes more generator calls, but
  /// one kernel instead of one per level: faster if each thread of the GPU has at most one leaf.
  static bool from_roots(const gpu::DeviceInfo& device, std::uint64_t leaves) {
    return leaves <= std::uint64_t{device.processors} * 128;
  }

  /// Returns the nodes per block of the cooperative strategy, so that every processor has two blocks.
  static unsigned cooperative_run(const gpu::DeviceInfo& device, dpf::LineShape shape,
                                  std::uint64_t leaves) {
    const std::uint64_t even = std::bit_floor(leaves / (2 * device.processors) + 1);
    return static_cast<unsigned>(
        std::clamp<std::uint64_t>(even, shape.leaves(), std::uint64_t{kRun}));
  }

  /// Maximum bytes of a level that is expanded for the whole shard at once.
  static std::size_t small_level(const gpu::DeviceInfo& device) { return device.cache_bytes / 8; }

  /// Returns the kernel for a product of `rows` rows: keys times planes.
  static Product product(const gpu::DeviceInfo& device, dpf::LineShape shape, std::uint64_t rows) {
    if (shape.bits() && device.capability < 80) return Product::plain;
    if (rows <= 16) return Product::narrow;
    return rows <= 64 ? Product::middle : Product::wide;
  }
};

/// The work of an answer.
struct GpuWork {
  std::uint64_t expansions = 0;  ///< calls of the generator for children
  std::uint64_t leaves = 0;      ///< calls of the generator for a leaf
  std::uint64_t launches = 0;    ///< kernel launches
  std::uint64_t peak_bytes = 0;  ///< peak device memory without the table
};

}  // namespace nescio::pir
