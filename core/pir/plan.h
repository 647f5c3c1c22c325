#pragma once

// The sizes into which a batch is divided. docs/performance.md has the measurements behind them.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "dpf/key.h"

namespace nescio::pir {

/// The memory of the sums of a pass, in groups of keys of which the last may be partly unused.
struct SumsSize {
  std::size_t group_bytes;
  std::size_t group_keys;
};

struct Plan {
  /// Maximum keys per pass over the table. With 256 a pass is bound by arithmetic, not by memory, and
  /// the matrices of a tile (16 KB with AVX-512, 64 KB with AVX2) still fit in a cache.
  static constexpr std::size_t kKeysPerPass = 256;

  /// Maximum bytes of sums per thread: tables with long rows take fewer keys per pass.
  static constexpr std::size_t kSumBytes = 16 << 20;

  /// Bytes of shares that are expanded at a time, for all keys of a pass together. Few bytes of bit
  /// shares belong to many rows, which pass through the same caches. A word product has a cost per key
  /// and call, so its calls take more rows: a quarter of a 1 MB second-level cache.
  static constexpr std::size_t kBitShareBytes = 32 << 10;
  static constexpr std::size_t kWordShareBytes = 256 << 10;

  /// Minimum leaves per key that are expanded at a time, if the tree has as many.
  static constexpr std::size_t kFewestLeaves = prg::kMaxArity;

  /// Minimum chunks per thread, for load balance.
  static constexpr std::uint64_t kChunksPerThread = 4;

  /// Bytes of unsliced rows that are multiplied with each key in turn: they fit in the first-level
  /// cache and amortize the work per key. Row counts are multiples of 16, which suit the kernels best.
  static constexpr std::size_t kRowsBytes = 32 << 10;
  static constexpr std::size_t kRowMultiple = 16;

  static std::size_t rows_per_step(std::size_t row_bytes) {
    return std::max<std::size_t>(1, kRowsBytes / kRowMultiple / row_bytes) * kRowMultiple;
  }

  std::size_t keys_per_pass;
  unsigned chunk_bits;  ///< log2 of the leaves that are expanded at a time

  /// `all_leaves` are those of a key over the rows in memory.
  Plan(const dpf::Shape& shape, std::uint64_t all_leaves, std::size_t keys, SumsSize sums,
       unsigned threads) {
    const std::size_t groups = std::max<std::size_t>(1, kSumBytes / sums.group_bytes);
    keys_per_pass = std::min({kKeysPerPass, groups * sums.group_keys, keys});
    const bool bits = shape.output == dpf::Output::bit;
    const std::uint64_t fit = std::max(kFewestLeaves, (bits ? kBitShareBytes : kWordShareBytes) /
                                                          (keys_per_pass * prg::kLeafBytes));
    const std::uint64_t even = all_leaves / (threads == 1 ? 1 : threads * kChunksPerThread);
    const std::uint64_t leaves = std::max<std::uint64_t>(1, std::min(fit, even));
    chunk_bits = std::min(static_cast<unsigned>(std::bit_width(leaves) - 1), ggm::Walk::kChunkBits);
  }
};

}  // namespace nescio::pir
