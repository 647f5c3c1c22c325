#pragma once

// Operations on single outputs on a GPU: the hash that turns correlated transfers into random ones,
// the choices of a receiver, and the transposition of bits.

#include "base/bits.h"
#include "ot/gpu/threads_gpu.h"
#include "ot/keys.h"

namespace nescio::ot {

/// Computes h(x ^ delta, i) with the tweakable hash h(x, i) = pi(pi(x) ^ i) ^ pi(x) (Guo, Katz,
/// Wang, Yu, IEEE S&P 2020, section 7.4), one thread per block. The lower half of i is the number
/// of the transfer, the upper half a tag; pi is AES under the key of the transfer's period.
struct HashTransfers : AesKernel {
  const prg::AesColumns* keys;  ///< starting with the key period of the first transfer
  const Block* from;
  Block* to;
  Block delta;
  std::uint64_t first;
  std::uint64_t tag;

  /// The largest key period: numbers of transfers wrap around at 2^64, and periods with them.
  static constexpr std::uint64_t kPeriodMask = ~std::uint64_t{0} >> kPeriodBits;

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const prg::AesGpu cipher = aes(block);
    for_each_item(block, tiles, [&](std::uint64_t i) {
      const std::uint64_t period = ((first + i) >> kPeriodBits) - (first >> kPeriodBits);
      const prg::AesColumns& own = keys[period & kPeriodMask];
      const Block inner = cipher.encrypt(own, from[i] ^ delta);
      to[i] = cipher.encrypt(own, inner ^ Block{first + i, tag}) ^ inner;
    });
  }
};

/// Writes the lowest bit of each block as a byte, one thread per block.
struct LowBits : PlainKernel {
  const Block* from;
  std::uint8_t* to;

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const std::uint64_t i = item(block);
    if (i < items) to[i] = static_cast<std::uint8_t>(from[i].lo & 1);
  }
};

/// Writes bit i of row j, of 128 rows, to bit j of block i. A thread writes eight blocks, from one
/// byte of each row. Eight bytes form a tile of 8 x 8 bits, which is transposed in a register
/// ("cuOT", section III-B, after Warren, "Hacker's Delight"). Neighbouring threads read
/// neighbouring bytes of a row, and each writes whole blocks.
struct TransposeBits : PlainKernel {
  const std::uint8_t* rows;
  std::uint64_t row_bytes;
  Block* to;

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const std::uint64_t column = item(block);
    if (column >= items) return;
    Block out[8] = {};
    NESCIO_UNROLL
    for (unsigned group = 0; group < 16; ++group) {
      std::uint64_t tile = 0;
      NESCIO_UNROLL
      for (unsigned i = 0; i < 8; ++i) {
        tile |= std::uint64_t{rows[(8 * group + i) * row_bytes + column]} << (8 * i);
      }
      tile = nescio::transpose_bits(tile);
      NESCIO_UNROLL
      for (unsigned i = 0; i < 8; ++i) {
        const std::uint64_t byte = ((tile >> (8 * i)) & 0xFF) << (8 * (group % 8));
        (group < 8 ? out[i].lo : out[i].hi) |= byte;
      }
    }
    NESCIO_UNROLL
    for (unsigned i = 0; i < 8; ++i) to[8 * column + i] = out[i];
  }
};

}  // namespace nescio::ot
