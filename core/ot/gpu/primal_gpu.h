#pragma once

// The code of primal LPN on a GPU (Yang, Weng, Lan, Zhang, Wang, "Ferret", CCS 2020, section 5): each
// output is its noise XOR ten of k secret blocks, at places that a public stream names: AES-128-CTR
// under the code's seed, ten words of 32 bits a row. k is chosen so that the second-level cache holds
// the blocks, and then what they cost is its bandwidth.

#include "ot/codes/primal.h"
#include "ot/gpu/threads_gpu.h"

namespace nescio::ot {

/// Words of the stream to memory: a thread a block of four.
struct MakeWords : AesKernel {
  prg::AesColumns keys;
  std::uint64_t first;  ///< of the blocks
  Block* out;

  template <class B>
  NESCIO_DEVICE void operator()(B& block) const {
    const prg::AesGpu cipher = aes(block);
    for_each_item(block, tiles,
                  [&](std::uint64_t i) { out[i] = cipher.encrypt(keys, {first + i, 0}); });
  }
};

/// Two rows that begin a block of the stream: five blocks of it.
inline constexpr unsigned kPrimalRows = 2;
inline constexpr unsigned kPrimalBlocks = kPrimalRows * kRowWeight / 4;

/// XORs the code's rows first_row..first_row+count-1 into `out`: a thread two rows, from an even one on.
struct EncodePrimal : AesKernel {
  prg::AesColumns keys;
  const Block* seeds;
  std::uint32_t k;
  std::uint64_t first_row;
  std::uint64_t count;
  const Block* words;  ///< the stream, from the first pair's on, where MakeWords made it; else null
  Block* out;

  static std::uint64_t pairs(std::uint64_t first_row, std::uint64_t count) {
    return ceil_div(first_row + count, kPrimalRows) - first_row / kPrimalRows;
  }

  template <class B>
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
        sums[(i * kBlockWords + j) / kRowWeight] ^= seeds[place(word_of(four, j))];
      }
    }
    NESCIO_UNROLL
    for (unsigned i = 0; i < kPrimalRows; ++i) {
      const std::uint64_t row = number * kPrimalRows + i;
      if (row >= first_row && row - first_row < count) out[row - first_row] ^= sums[i];
    }
  }

  NESCIO_DEVICE std::uint32_t place(std::uint32_t word) const {
    return (k & (k - 1)) == 0 ? word & (k - 1)
                              : static_cast<std::uint32_t>((std::uint64_t{word} * k) >> 32);
  }
};

/// XORs blocks to others: a thread a block.
struct AddBlocks : PlainKernel {
  const Block* from;
  Block* to;

  template <class B>
  NESCIO_DEVICE void operator()(B& block) const {
    const std::uint64_t i = item(block);
    if (i < items) to[i] ^= from[i];
  }
};

}  // namespace nescio::ot
