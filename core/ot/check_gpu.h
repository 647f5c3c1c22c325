#pragma once

// What the consistency checks compute of leaves on a GPU (Yang et al., "Ferret", CCS 2020, figure 9):
// sums of products in GF(2^128), modulo X^128 + X^7 + X^2 + X + 1, bit i of a block being the
// coefficient of X^i. A GPU has no carry-less multiplication: a product is 32 shifts of its sum, each
// after four masked additions. The sum stays unreduced until a thread has added all of its leaves.

#include "ot/threads_gpu.h"

namespace nescio::ot {

/// Products of polynomials over GF(2), added up: eight words.
class ProductSum {
 public:
  /// Adds a * b, in a time that depends on neither.
  NESCIO_DEVICE void add(Block a, Block b) {
    std::uint32_t own[2 * kBlockWords] = {};
    for (unsigned bit = 32; bit-- > 0;) {
      NESCIO_UNROLL
      for (unsigned i = 2 * kBlockWords; --i > 0;) own[i] = own[i] << 1 | own[i - 1] >> 31;
      own[0] <<= 1;
      NESCIO_UNROLL
      for (unsigned i = 0; i < kBlockWords; ++i) {
        const std::uint32_t mask = 0u - ((word_of(a, i) >> bit) & 1);
        NESCIO_UNROLL
        for (unsigned j = 0; j < kBlockWords; ++j) own[i + j] ^= word_of(b, j) & mask;
      }
    }
    NESCIO_UNROLL
    for (unsigned i = 0; i < 2 * kBlockWords; ++i) words_[i] ^= own[i];
  }

  /// The remainder: X^128 = X^7 + X^2 + X + 1, twice.
  NESCIO_DEVICE Block reduced() const {
    std::uint32_t low[kBlockWords + 1] = {words_[0], words_[1], words_[2], words_[3], 0};
    NESCIO_UNROLL
    for (unsigned i = 0; i < kBlockWords; ++i) fold(words_[kBlockWords + i], low + i);
    const std::uint32_t rest = low[kBlockWords];
    fold(rest, low);
    return block_of(low);
  }

 private:
  NESCIO_DEVICE static void fold(std::uint32_t high, std::uint32_t* to) {
    to[0] ^= high ^ high << 1 ^ high << 2 ^ high << 7;
    to[1] ^= high >> 31 ^ high >> 30 ^ high >> 25;
  }

  std::uint32_t words_[2 * kBlockWords] = {};
};

/// The coefficient of a leaf: a block of the stream under the challenge.
struct ChiSum : AesKernel {
  prg::AesColumns keys;
  const Block* leaves;
  std::uint64_t first;  ///< number of the first of them
  std::uint32_t* sum;   ///< four words, zero before

  template <class B>
  NESCIO_DEVICE void operator()(B& block) const {
    const prg::AesGpu cipher = aes(block);
    ProductSum total;
    for_each_item(block, tiles, [&](std::uint64_t i) {
      total.add(cipher.encrypt(keys, {first + i, 0}), leaves[i]);
    });
    xor_threads(block, total.reduced(), xor_room(block), sum);
  }
};

/// The coefficients at some positions: a thread a position.
struct ChiAt : AesKernel {
  prg::AesColumns keys;
  const std::uint64_t* positions;
  Block* out;

  template <class B>
  NESCIO_DEVICE void operator()(B& block) const {
    const prg::AesGpu cipher = aes(block);
    for_each_item(block, tiles,
                  [&](std::uint64_t i) { out[i] = cipher.encrypt(keys, {positions[i], 0}); });
  }
};

}  // namespace nescio::ot
