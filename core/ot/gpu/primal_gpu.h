#pragma once

// The code of primal LPN on a GPU (Yang, Weng, Lan, Zhang, Wang, "Ferret", CCS 2020, section 5):
// each output is its noise XOR ten of k secret blocks. A public stream gives their indices:
// AES-128-CTR under the seed of the code, ten 32-bit words per row. k is chosen so that the blocks
// fit in the second-level cache, whose bandwidth then limits the kernel.

#include "ot/codes/primal.h"
#include "ot/gpu/threads_gpu.h"

namespace nescio::ot {

/// Writes words of the stream to memory, one block of four words per thread.
struct MakeWords : AesKernel {
  prg::AesColumns keys;
  std::uint64_t first;  ///< index of the first block of the stream
  Block* out;

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const prg::AesGpu cipher = aes(block);
    for_each_item(block, tiles,
                  [&](std::uint64_t i) { out[i] = cipher.encrypt(keys, {first + i, 0}); });
  }
};

/// Rows of a thread. The words of two rows, from an even one on, are five whole blocks of the
/// stream.
inline constexpr unsigned kPrimalRows = 2;
inline constexpr unsigned kPrimalBlocks = kPrimalRows * kRowWeight / 4;

/// XORs the product of rows first_row to first_row + count - 1 with `seeds` into `out`, two rows
/// per thread.
struct EncodePrimal : AesKernel {
  prg::AesColumns keys;
  const Block* seeds;
  std::uint32_t k;
  std::uint64_t first_row;
  std::uint64_t count;
  const Block* words;  ///< the stream from MakeWords, starting at the first pair of rows, or null
  Block* out;

  static std::uint64_t pairs(std::uint64_t first_row, std::uint64_t count) {
    return ceil_div(first_row + count, kPrimalRows) - first_row / kPrimalRows;
  }

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const prg::AesGpu cipher = aes(block);
    for_each_item(block, tiles, [&](std::uint64_t pair) { rows(cipher, pair); });
  }

 private:
  NESCIO_DEVICE void rows(const prg::AesGpu& cipher, std::uint64_t pair) const {
    const std::uint64_t number = first_row / kPrimalRows + pair;
    Block sums[kPrimalRows] = {};
    NESCIO_UNROLL
    for (unsigned i = 0; i < kPrimalBlocks; ++i) {
      const Block four = words != nullptr ? words[pair * kPrimalBlocks + i]
                                          : cipher.encrypt(keys, {number * kPrimalBlocks + i, 0});
      NESCIO_UNROLL
      for (unsigned j = 0; j < kBlockWords; ++j) {
        sums[(i * kBlockWords + j) / kRowWeight] ^= seeds[column(word_of(four, j))];
      }
    }
    NESCIO_UNROLL
    for (unsigned i = 0; i < kPrimalRows; ++i) {
      const std::uint64_t row = number * kPrimalRows + i;
      if (row >= first_row && row - first_row < count) out[row - first_row] ^= sums[i];
    }
  }

  NESCIO_DEVICE std::uint32_t column(std::uint32_t word) const {
    return (k & (k - 1)) == 0 ? word & (k - 1)
                              : static_cast<std::uint32_t>((std::uint64_t{word} * k) >> 32);
  }
};

/// XORs blocks of `from` into `to`, one thread per block.
struct AddBlocks : PlainKernel {
  const Block* from;
  Block* to;

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const std::uint64_t i = item(block);
    if (i < items) to[i] ^= from[i];
  }
};

}  // namespace nescio::ot
