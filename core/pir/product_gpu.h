#pragma once

// The product of lines of shares with the lines of a table on a GPU: a matrix product whose inner
// dimension is a line's rows.
//
//     C[m][n] = sum over chunks c of <share line (c, m), table line (c, n)>
//
// m counts the keys and within them the planes of their shares, n the columns. For bits only the
// parity of C is wanted, and sums are packed: bit n % 32 of word n / 32 of row m. For words C is summed
// up in 64 bits, to which every block adds what it has of at most 2^16 rows, so that nothing is lost.

#include <cstddef>
#include <cstdint>

#include "dpf/lines.h"
#include "pir/table_gpu.h"
#include "prg/word.h"

namespace nescio::pir {

/// Rows after which sums of products of bytes might leave 32 bits: 2^16 x 255^2 < 2^32.
inline constexpr std::uint64_t kMostRowsOfSum = std::uint64_t{1} << 16;

/// The operation on bits: products are ANDs, and only parities count.
struct BitOp {
  using Sum = std::uint32_t;
  static constexpr bool kBits = true;

  /// A running product of two lines, a word of each at a time, whose parity counts.
  template <class B>
  NESCIO_DEVICE static std::uint32_t dot(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return c ^ (a & b);
  }
  template <class B>
  NESCIO_DEVICE static void multiply(B& block, std::uint32_t (&c)[4], const std::uint32_t (&a)[4],
                                     const std::uint32_t (&b)[2]) {
    block.multiply_bits(c, a, b);
  }
  NESCIO_DEVICE static std::uint32_t parity(std::uint32_t x) {
    x ^= x >> 16;
    x ^= x >> 8;
    x ^= x >> 4;
    return (0x6996u >> (x & 15)) & 1;
  }
};

/// The operation on bytes.
struct ByteOp {
  using Sum = std::uint64_t;
  static constexpr bool kBits = false;

  template <class B>
  NESCIO_DEVICE static std::uint32_t dot(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return B::dot_bytes(a, b, c);
  }
  template <class B>
  NESCIO_DEVICE static void multiply(B& block, std::uint32_t (&c)[4], const std::uint32_t (&a)[4],
                                     const std::uint32_t (&b)[2]) {
    block.multiply_bytes(c, a, b);
  }
};

/// Words of a row of sums.
template <class Op>
NESCIO_INLINE std::uint64_t sum_words(std::uint32_t columns) {
  return Op::kBits ? columns / 32 : columns;
}

/// What a product reads and where it adds: chunks first..first+count-1 of the table.
template <class Op>
struct ProductArguments {
  const std::uint32_t* shares;  ///< lines of the chunks, `rows` a chunk
  std::uint32_t rows;           ///< of C: keys x planes
  LineTable table;
  std::uint64_t first_chunk;
  std::uint64_t chunks;
  typename Op::Sum* sums;
};

/// The product by matrix instructions. A block makes a tile of C over a part of the chunks: kWarpsM
/// by kWarpsN warps of 16 kRowBlocks rows by 64 columns each. Lines go to shared memory kStages chunks
/// ahead. A lane reads words 4t..4t+3 of a line where the instruction has words t and 4 + t of two
/// halves: any order of the inner dimension will do that both sides agree on, and in this one every
/// read is of 16 neighbouring bytes, and those of a warp of 512.
template <class Op, unsigned kRowBlocks, unsigned kWarpsM, unsigned kWarpsN>
struct MatrixProduct {
  static constexpr unsigned kThreads = gpu::kWarp * kWarpsM * kWarpsN;
  static constexpr bool kTogether = true;
  static constexpr unsigned kTileM = 16 * kRowBlocks * kWarpsM;
  static constexpr unsigned kTileN = 64 * kWarpsN;
  static constexpr unsigned kStages = 4;
  static constexpr unsigned kLineQuads = 4;
  static constexpr unsigned kStageQuads = (kTileM + kTileN) * kLineQuads;

  ProductArguments<Op> of;
  std::uint32_t tiles_m, tiles_n;
  std::uint64_t chunks_per_block;

  /// `blocks` are wanted in all, if there are chunks enough.
  MatrixProduct(const ProductArguments<Op>& arguments, std::uint64_t blocks)
      : of(arguments),
        tiles_m(static_cast<std::uint32_t>(gpu::parts(of.rows, kTileM))),
        tiles_n(static_cast<std::uint32_t>(gpu::parts(of.table.columns, kTileN))) {
    const std::uint64_t splits = gpu::parts(blocks, std::uint64_t{tiles_m} * tiles_n);
    chunks_per_block = gpu::parts(of.chunks, splits);
    const std::uint64_t most = kMostRowsOfSum / of.table.shape.rows();
    if (!Op::kBits && chunks_per_block > most) chunks_per_block = most;
  }

  std::size_t shared_bytes() const { return kStages * kStageQuads * sizeof(gpu::Quad); }
  gpu::Grid grid() const {
    return {tiles_m * tiles_n, static_cast<std::uint32_t>(gpu::parts(of.chunks, chunks_per_block))};
  }

  template <class B>
  NESCIO_DEVICE void operator()(B& block) const {
    // Neighbouring blocks share a tile of the table, which so comes from memory once.
    const std::uint32_t m0 = block.x() % tiles_m * kTileM, n0 = block.x() / tiles_m * kTileN;
    const std::uint64_t begin = block.y() * chunks_per_block;
    const std::uint64_t left = of.chunks - begin;
    const std::uint64_t count = left < chunks_per_block ? left : chunks_per_block;
    auto* stages = reinterpret_cast<gpu::Quad*>(block.shared());
    const unsigned row = block.warp() / kWarpsN * 16 * kRowBlocks;
    const unsigned column = block.warp() % kWarpsN * 64;

    std::uint32_t c[kRowBlocks][8][4] = {};
    for (unsigned s = 0; s + 1 < kStages; ++s) {
      if (s < count) fetch(block, m0, n0, begin + s, stages + s * kStageQuads);
      block.commit_copies();
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      block.template wait_copies<kStages - 2>();
      block.sync();
      const std::uint64_t next = i + kStages - 1;
      if (next < count) {
        fetch(block, m0, n0, begin + next, stages + next % kStages * kStageQuads);
      }
      block.commit_copies();
      multiply(block, stages + i % kStages * kStageQuads, row, column, c);
    }
    for (unsigned r = 0; r < kRowBlocks; ++r) {
      add_up(block, m0 + row + 16 * r, n0 + column, c[r]);
    }
  }

 private:
  /// Copies a chunk's lines of the tile; beyond the last row or column some others, which count in
  /// no sum that is kept.
  template <class B>
  NESCIO_DEVICE void fetch(B& block, std::uint32_t m0, std::uint32_t n0, std::uint64_t chunk,
                           gpu::Quad* stage) const {
    const auto* shares =
        reinterpret_cast<const gpu::Quad*>(of.shares) + chunk * of.rows * kLineQuads;
    const auto* table =
        reinterpret_cast<const gpu::Quad*>(of.table.line(of.first_chunk + chunk, 0));
    for (unsigned i = block.thread(); i < kTileM * kLineQuads; i += kThreads) {
      const std::uint32_t m = m0 + i / kLineQuads;
      const std::uint64_t line = m < of.rows ? m : of.rows - 1;
      block.copy_async(stage + i, shares + line * kLineQuads + i % kLineQuads);
    }
    for (unsigned i = block.thread(); i < kTileN * kLineQuads; i += kThreads) {
      const std::uint32_t n = n0 + i / kLineQuads;
      const std::uint64_t line = n < of.table.columns ? n : of.table.columns - 1;
      block.copy_async(stage + kTileM * kLineQuads + i, table + line * kLineQuads + i % kLineQuads);
    }
  }

  template <class B>
  NESCIO_DEVICE static void multiply(B& block, const gpu::Quad* stage, unsigned row,
                                     unsigned column, std::uint32_t (&c)[kRowBlocks][8][4]) {
    // Lane 4g + t reads quad t of line g: neighbouring lanes, neighbouring quads.
    const gpu::Quad* shares = stage + row * kLineQuads + block.lane();
    const gpu::Quad* table = stage + (kTileM + column) * kLineQuads + block.lane();
    gpu::Quad low[kRowBlocks], high[kRowBlocks];
    NESCIO_UNROLL
    for (unsigned r = 0; r < kRowBlocks; ++r) {
      low[r] = shares[16 * r * kLineQuads];
      high[r] = shares[(16 * r + 8) * kLineQuads];
    }
    NESCIO_UNROLL
    for (unsigned n = 0; n < 8; ++n) {
      const gpu::Quad b = table[8 * n * kLineQuads];
      NESCIO_UNROLL
      for (unsigned r = 0; r < kRowBlocks; ++r) {
        const std::uint32_t a0[4] = {low[r].w[0], high[r].w[0], low[r].w[1], high[r].w[1]};
        const std::uint32_t a1[4] = {low[r].w[2], high[r].w[2], low[r].w[3], high[r].w[3]};
        const std::uint32_t b0[2] = {b.w[0], b.w[1]}, b1[2] = {b.w[2], b.w[3]};
        Op::multiply(block, c[r][n], a0, b0);
        Op::multiply(block, c[r][n], a1, b1);
      }
    }
  }

  /// Adds 16 rows by 64 columns of C, as they lie in a warp's lanes, to the sums.
  template <class B>
  NESCIO_DEVICE void add_up(B& block, std::uint32_t m0, std::uint32_t n0,
                            const std::uint32_t (&c)[8][4]) const {
    const unsigned g = block.lane() / 4, t = block.lane() % 4;
    for (unsigned half = 0; half < 2; ++half) {
      const std::uint32_t m = m0 + 8 * half + g;
      if constexpr (Op::kBits) {
        std::uint32_t words[2] = {};
        NESCIO_UNROLL
        for (unsigned n = 0; n < 8; ++n) {
          const std::uint32_t two = (c[n][2 * half] & 1) | (c[n][2 * half + 1] & 1) << 1;
          words[n / 4] |= two << (8 * (n % 4) + 2 * t);
        }
        for (unsigned w = 0; w < 2; ++w) {
          words[w] |= block.shuffle_xor(words[w], 1);
          words[w] |= block.shuffle_xor(words[w], 2);
          if (t == 0 && m < of.rows && n0 < of.table.columns) {
            block.flip(of.sums + m * sum_words<Op>(of.table.columns) + n0 / 32 + w, words[w]);
          }
        }
      } else {
        if (m >= of.rows || n0 >= of.table.columns) continue;
        auto* sums = of.sums + m * sum_words<Op>(of.table.columns) + n0 + 2 * t;
        NESCIO_UNROLL
        for (unsigned n = 0; n < 8; ++n) {
          for (unsigned i = 0; i < 2; ++i) {
            block.add(sums + 8 * n + i, static_cast<typename Op::Sum>(c[n][2 * half + i]));
          }
        }
      }
    }
  }
};

}  // namespace nescio::pir
