#pragma once

// What is done to each output by itself on a GPU: the hash that makes random transfers of correlated
// ones, a receiver's choices, and bits of rows to bits of blocks.

#include "base/bits.h"
#include "ot/gpu/threads_gpu.h"
#include "ot/keys.h"

namespace nescio::ot {

/// h(x ^ delta, i) with the tweakable hash h(x, i) = pi(pi(x) ^ i) ^ pi(x) (Guo, Katz, Wang, Yu,
/// IEEE S&P 2020, section 7.4): a thread a block. i is the transfer's number below a tag, pi is AES
/// under the key of its stretch.
struct HashEach : AesKernel {
  const prg::AesColumns* keys;  ///< from that of the first transfer's stretch on
  const Block* from;
  Block* to;
  Block delta;
  std::uint64_t first;
  std::uint64_t tag;

  /// Numbers run over at 2^64, and those of stretches with them.
  static constexpr std::uint64_t kStretches = ~std::uint64_t{0} >> kStretchBits;

  template <class B>
  NESCIO_DEVICE void operator()(B& block) const {
    const prg::AesGpu cipher = aes(block);
    for_each_item(block, tiles, [&](std::uint64_t i) {
      const std::uint64_t stretch = ((first + i) >> kStretchBits) - (first >> kStretchBits);
      const prg::AesColumns& own = keys[stretch & kStretches];
      const Block inner = cipher.encrypt(own, from[i] ^ delta);
      to[i] = cipher.encrypt(own, inner ^ Block{first + i, tag}) ^ inner;
    });
  }
};

/// The lowest bit of each block, as a byte: a thread a block.
struct LowBits : PlainKernel {
  const Block* from;
  std::uint8_t* to;

  template <class B>
  NESCIO_DEVICE void operator()(B& block) const {
    const std::uint64_t i = item(block);
    if (i < items) to[i] = static_cast<std::uint8_t>(from[i].lo & 1);
  }
};

/// Bit i of row j, of 128 rows, to bit j of block i: a thread eight blocks, from a byte of each row.
/// Eight bytes are a tile of 8 x 8 bits that is transposed in a register ("cuOT", section III-B, after
/// Warren, "Hacker's Delight"), so that neighbouring threads read neighbouring bytes of a row, and
/// each writes whole blocks.
struct TransposeBits : PlainKernel {
  const std::uint8_t* rows;
  std::uint64_t row_bytes;
  Block* to;

  template <class B>
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
