#pragma once

// Shared parts of the kernels of oblivious transfer: the division of items among the threads that a
// GPU holds at once, and XORs over threads.

#include <cstddef>
#include <cstdint>

#include "base/block.h"
#include "base/word.h"
#include "gpu/thread_block.h"
#include "prg/aes128_gpu.h"

namespace nescio::ot {

/// Threads of a block that computes AES: many, because they share one table.
inline constexpr unsigned kAesThreads = 512;
inline constexpr unsigned kWarps = kAesThreads / gpu::kWarp;
inline constexpr unsigned kBlockWords = 4;

/// A word of memory that other kernels access as part of a block.
#if defined(__GNUC__) && !defined(__CUDACC__)
using SharedWord [[gnu::may_alias]] = std::uint32_t;
#else
using SharedWord = std::uint32_t;
#endif

/// Items in tiles, one item per thread. A block of threads processes consecutive tiles in order.
struct Tiles {
  std::uint64_t items;
  std::uint32_t blocks;

  NESCIO_INLINE std::uint64_t count() const { return ceil_div(items, kAesThreads); }
  NESCIO_INLINE std::uint64_t first(std::uint64_t block) const { return count() * block / blocks; }
};

/// Calls work(item) for the items of the calling thread.
template <gpu::ThreadBlock B, class Work>
NESCIO_DEVICE inline void for_each_item(const B& block, const Tiles& tiles, const Work& work) {
  const std::uint64_t end = tiles.first(block.x() + 1);
  for (std::uint64_t tile = tiles.first(block.x()); tile < end; ++tile) {
    const std::uint64_t item = tile * kAesThreads + block.thread();
    if (item < tiles.items) work(item);
  }
}

/// The XOR of `value` over groups of `width` lanes of a warp, a power of two, by butterfly
/// shuffles.
template <gpu::ThreadBlock B>
NESCIO_DEVICE inline Block xor_lanes(B& block, Block value, unsigned width) {
  for (unsigned mask = 1; mask < width; mask <<= 1) {
    const std::uint64_t lo = block.shuffle_xor(static_cast<std::uint32_t>(value.lo), mask);
    const std::uint64_t lo_high =
        block.shuffle_xor(static_cast<std::uint32_t>(value.lo >> 32), mask);
    const std::uint64_t hi = block.shuffle_xor(static_cast<std::uint32_t>(value.hi), mask);
    const std::uint64_t hi_high =
        block.shuffle_xor(static_cast<std::uint32_t>(value.hi >> 32), mask);
    value ^= Block{lo | lo_high << 32, hi | hi_high << 32};
  }
  return value;
}

NESCIO_INLINE std::uint32_t word_of(Block value, unsigned word) {
  const std::uint64_t half = word < 2 ? value.lo : value.hi;
  return static_cast<std::uint32_t>(half >> (32 * (word & 1)));
}
NESCIO_INLINE Block block_of(const std::uint32_t* words) {
  return {words[0] | std::uint64_t{words[1]} << 32, words[2] | std::uint64_t{words[3]} << 32};
}

/// XORs a block into four words atomically.
template <gpu::ThreadBlock B>
NESCIO_DEVICE inline void atomic_xor_block(B& block, std::uint32_t* to, Block value) {
  NESCIO_UNROLL
  for (unsigned word = 0; word < kBlockWords; ++word)
    block.atomic_xor(to + word, word_of(value, word));
}

/// Bytes of shared memory that xor_threads needs, in addition to the AES table.
inline constexpr std::size_t kXorScratchBytes = kWarps * sizeof(Block);

/// XORs `value` over all threads of a block into four words. All threads must call it, with the
/// same `shared` and `to`.
template <gpu::ThreadBlock B>
NESCIO_DEVICE inline void xor_threads(B& block, Block value, std::uint32_t* shared,
                                      std::uint32_t* to) {
  value = xor_lanes(block, value, gpu::kWarp);
  if (block.lane() == 0) {
    NESCIO_UNROLL
    for (unsigned word = 0; word < kBlockWords; ++word) {
      shared[block.warp() * kBlockWords + word] = word_of(value, word);
    }
  }
  block.sync();
  if (block.thread() < kBlockWords) {
    std::uint32_t sum = 0;
    for (unsigned warp = 0; warp < kWarps; ++warp)
      sum ^= shared[warp * kBlockWords + block.thread()];
    block.atomic_xor(to + block.thread(), sum);
  }
  block.sync();
}

/// A kernel that computes AES, with one table per block of threads.
struct AesKernel {
  static constexpr unsigned kThreads = kAesThreads;
  static constexpr unsigned kMinBlocks = 2;
  static constexpr bool kCooperative = true;

  Tiles tiles;
  const std::uint32_t* table;  ///< prg::aes_table()

  std::size_t shared_bytes() const { return prg::AesGpu::kSharedBytes + kXorScratchBytes; }

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE prg::AesGpu aes(B& block) const {
    return prg::AesGpu(block, table, block.shared(), kAesThreads);
  }
  template <gpu::ThreadBlock B>
  NESCIO_DEVICE std::uint32_t* xor_scratch(const B& block) const {
    return reinterpret_cast<std::uint32_t*>(block.shared() + prg::AesGpu::kSharedBytes);
  }
};

/// A kernel of independent threads, one item per thread.
struct PlainKernel {
  static constexpr unsigned kThreads = 128;
  static constexpr bool kCooperative = false;

  std::uint64_t items;

  gpu::Grid grid() const { return {static_cast<std::uint32_t>(ceil_div(items, kThreads)), 1}; }
  template <gpu::ThreadBlock B>
  NESCIO_DEVICE std::uint64_t item(const B& block) const {
    return std::uint64_t{block.x()} * kThreads + block.thread();
  }
};

}  // namespace nescio::ot
