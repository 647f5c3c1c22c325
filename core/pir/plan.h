#pragma once

// How a batch is cut up, in one place. The figures behind the numbers are in docs/performance.md.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "dpf/key.h"

namespace nescio::pir {

/// What the sums of a pass take: so many bytes for each group of keys, wanted or not.
struct SumsSize {
  std::size_t group_bytes;
  std::size_t group_keys;
};

struct Plan {
  /// Keys answered in one pass over the table; more take another pass. With 256 a pass is bound by
  /// arithmetic, not by memory, and the matrices of a tile (16 KB with AVX-512, 64 KB with AVX2)
  /// still stay in a cache.
  static constexpr std::size_t kKeysPerPass = 256;

  /// Bytes of sums that a thread holds: fewer keys a pass where rows are long.
  static constexpr std::size_t kSumBytes = 16 << 20;

  /// Bytes of shares that are expanded at a time, for all keys of a pass together: a quarter of a
  /// second-level cache of 1 MB. Fewer would leave the generator's kernels half empty.
  static constexpr std::size_t kShareBytes = 256 << 10;

  /// Chunks that a thread has at least, so that threads can share the work evenly.
  static constexpr std::uint64_t kChunksPerThread = 4;

  /// Bytes of rows as they came that are multiplied at a time with each key in turn: they stay in the
  /// first-level cache, and are enough that what is done once for each key does not count. Long rows
  /// come in sixteens all the same, which the kernels like best.
  static constexpr std::size_t kRowsBytes = 32 << 10;
  static constexpr std::size_t kRowsTogether = 16;

  static std::size_t rows_at_a_time(std::size_t row_bytes) {
    return std::max<std::size_t>(1, kRowsBytes / kRowsTogether / row_bytes) * kRowsTogether;
  }

  std::size_t keys_per_pass;
  unsigned chunk_bits;  ///< log2 of the leaves that are expanded at a time

  Plan(const dpf::Keys& keys, SumsSize sums, unsigned threads) {
    const std::size_t groups = std::max<std::size_t>(1, kSumBytes / sums.group_bytes);
    keys_per_pass = std::min({kKeysPerPass, groups * sums.group_keys, keys.size()});
    const std::uint64_t room = kShareBytes / (keys_per_pass * prg::kLeafBytes);
    const std::uint64_t even =
        keys.shape().leaves() / (threads == 1 ? 1 : threads * kChunksPerThread);
    const std::uint64_t leaves = std::max<std::uint64_t>(1, std::min(room, even));
    chunk_bits = std::min(static_cast<unsigned>(std::bit_width(leaves) - 1), ggm::Walk::kChunkBits);
  }
};

}  // namespace nescio::pir
