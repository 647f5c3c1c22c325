#pragma once

// How a batch is cut up, in one place. The figures behind the numbers are in docs/performance.md.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "dpf/key.h"

namespace nescio::pir {

struct Plan {
  /// Keys answered in one pass over the table; more take another pass. With 256 the matrices of a tile
  /// take half of a 32 KB cache, and a pass is bound by arithmetic, not by memory.
  static constexpr std::size_t kKeysPerPass = 256;

  /// Bytes of sums that a thread holds: fewer keys a pass where rows are long.
  static constexpr std::size_t kSumBytes = 16 << 20;

  /// Bytes of shares that are expanded at a time, for all keys of a pass together: a quarter of a
  /// second-level cache of 1 MB. Fewer would leave the generator's kernels half empty.
  static constexpr std::size_t kShareBytes = 256 << 10;

  /// Chunks that a thread has at least, so that threads can share the work evenly.
  static constexpr std::uint64_t kChunksPerThread = 4;

  std::size_t keys_per_pass;
  unsigned chunk_bits;  ///< log2 of the leaves that are expanded at a time

  /// For keys whose sums take `sum_bytes` each.
  Plan(const dpf::Keys& keys, std::size_t sum_bytes, unsigned threads) {
    const std::size_t most = std::max<std::size_t>(1, kSumBytes / sum_bytes);
    keys_per_pass = std::min({kKeysPerPass, most, keys.size()});
    const std::uint64_t room = kShareBytes / (keys_per_pass * prg::kLeafBytes);
    const std::uint64_t even =
        keys.shape().leaves() / (threads == 1 ? 1 : threads * kChunksPerThread);
    const std::uint64_t leaves = std::max<std::uint64_t>(1, std::min(room, even));
    chunk_bits = std::min(static_cast<unsigned>(std::bit_width(leaves) - 1), ggm::Walk::kChunkBits);
  }
};

}  // namespace nescio::pir
