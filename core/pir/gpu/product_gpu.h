#pragma once

// The product of lines of shares with the lines of a table on a GPU: a matrix product whose inner
// dimension is a line's rows.
//
//     C[m][n] = sum over chunks c of <share line (c, m), table line (c, n)>
//
// m indexes the keys and, within a key, the planes of its shares; n indexes the columns. One kernel
// computes the products of several bins, each with keys and lines of its own. For bits only
// the parity of C is needed, and sums are packed: bit n % 32 of word n / 32 of row m. For words sums
// have 64 bits, and every block adds its 32-bit partial sums of at most 2^16 rows, so none overflows.

#include <cstddef>
#include <cstdint>

#include "base/word.h"
#include "dpf/lines.h"
#include "pir/gpu/table_gpu.h"

namespace nescio::pir {

/// Maximum rows of a 32-bit sum of products of bytes: 2^16 x 255^2 < 2^32.
inline constexpr std::uint64_t kMaxRowsOfSum = std::uint64_t{1} << 16;

/// The operation on bits: products are ANDs, and only parities matter.
struct BitOp {
  using Sum = std::uint32_t;
  static constexpr bool kBits = true;

  /// Accumulates the product of two words, of which only the parity matters.
  template <gpu::ThreadBlock B>
  NESCIO_DEVICE static std::uint32_t dot(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return c ^ (a & b);
  }
  template <gpu::ThreadBlock B>
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

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE static std::uint32_t dot(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return B::dot_bytes(a, b, c);
  }
  template <gpu::ThreadBlock B>
  NESCIO_DEVICE static void multiply(B& block, std::uint32_t (&c)[4], const std::uint32_t (&a)[4],
                                     const std::uint32_t (&b)[2]) {
    block.multiply_bytes(c, a, b);
  }
};

/// Words of a row of sums.
template <class Op>
NESCIO_INLINE std::uint64_t sum_words(std::uint32_t columns) {
  return Op::kBits ? ceil_div(columns, 32) : columns;
}

/// The arguments of products over `chunks` chunks of each bin, beginning with `first_chunk`.
template <class Op>
struct ProductArguments {
  const std::uint32_t* shares;  ///< lines of the chunks: per chunk, `rows` of each bin
  std::uint32_t rows;           ///< rows of a bin's C: keys x planes
  std::uint32_t bins;
  LineTable table;
  std::uint64_t first_chunk;
  std::uint64_t chunks;
  typename Op::Sum* sums;

  /// Returns the lines of a bin's shares of a chunk.
  NESCIO_INLINE const gpu::Quad* share_lines(std::uint32_t bin, std::uint64_t chunk) const {
    const std::uint64_t line = (chunk * bins + bin) * rows;
    return reinterpret_cast<const gpu::Quad*>(shares + line * dpf::kLineWords);
  }
  /// Returns the line of a bin's column in a chunk.
  NESCIO_INLINE const gpu::Quad* table_line(std::uint32_t bin, std::uint64_t chunk,
                                            std::uint32_t column) const {
    return reinterpret_cast<const gpu::Quad*>(
        table.line(bin * table.chunks() + first_chunk + chunk, column));
  }
  /// Returns the sums of a bin.
  NESCIO_INLINE typename Op::Sum* sums_of(std::uint32_t bin) const {
    return sums + std::uint64_t{bin} * rows * sum_words<Op>(table.columns);
  }
};

/// The division of products into tiles of C, and of their chunks among at most about `blocks` blocks.
struct Tiles {
  std::uint32_t m, n, bins;
  std::uint64_t chunks, chunks_per_block;

  template <class Op>
  Tiles(const ProductArguments<Op>& of, unsigned tile_m, unsigned tile_n, std::uint64_t blocks)
      : m(static_cast<std::uint32_t>(ceil_div(of.rows, tile_m))),
        n(static_cast<std::uint32_t>(ceil_div(of.table.columns, tile_n))),
        bins(of.bins),
        chunks(of.chunks) {
    const std::uint64_t splits = blocks / (std::uint64_t{m} * n * bins);
    chunks_per_block = ceil_div(chunks, splits > 0 ? splits : 1);
    const std::uint64_t max = kMaxRowsOfSum / of.table.shape.rows();
    if (!Op::kBits && chunks_per_block > max) chunks_per_block = max;
  }

  gpu::Grid grid() const {
    return {m * n * bins, static_cast<std::uint32_t>(ceil_div(chunks, chunks_per_block))};
  }
  /// Return the tile and the bin of a block. Neighbouring blocks have the same tile of the table, which is
  /// thus read from memory once.
  NESCIO_INLINE std::uint32_t row_tile(std::uint32_t x) const { return x % m; }
  NESCIO_INLINE std::uint32_t column_tile(std::uint32_t x) const { return x / m % n; }
  NESCIO_INLINE std::uint32_t bin(std::uint32_t x) const { return x / m / n; }
  /// Return the chunks of a block: begin..end-1.
  NESCIO_INLINE std::uint64_t begin(std::uint32_t y) const { return y * chunks_per_block; }
  NESCIO_INLINE std::uint64_t end(std::uint32_t y) const {
    const std::uint64_t stop = (y + std::uint64_t{1}) * chunks_per_block;
    return stop < chunks ? stop : chunks;
  }
};

inline constexpr unsigned kLineQuads = 4;

/// Returns the position of quad i of a tile's lines in shared memory. With lines of 64 bytes, the same
/// quad of every second line would be in the same banks. The swizzle permutes the quads of a line by
/// its number, so the eight lines that are read together have no bank conflicts.
NESCIO_INLINE unsigned swizzled(unsigned i) { return i ^ ((i >> 3) & 3); }

/// A thread's part in copying `kLines` lines of each chunk, beginning with line `first`: the quads to
/// copy. In place of lines beyond the last one it copies the last one, whose sums are discarded.
template <unsigned kLines, unsigned kThreads>
class LineCopies {
 public:
  static constexpr unsigned kQuads = kLines * kLineQuads;
  static constexpr unsigned kCopies = (kQuads + kThreads - 1) / kThreads;
  static_assert(kThreads % 32 == 0, "the lines that a thread copies have the same swizzle");

  NESCIO_DEVICE LineCopies(unsigned thread, std::uint32_t first, std::uint32_t lines) {
    NESCIO_UNROLL
    for (unsigned k = 0; k < kCopies; ++k) {
      const unsigned i = thread + k * kThreads;
      const std::uint32_t line = first + i / kLineQuads;
      offsets_[k] = (line < lines ? line : lines - 1) * kLineQuads + i % kLineQuads;
    }
  }

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void copy(B& block, const gpu::Quad* chunk, gpu::Quad* to) const {
    NESCIO_UNROLL
    for (unsigned k = 0; k < kCopies; ++k) {
      const unsigned i = block.thread() + k * kThreads;
      if (i < kQuads) block.copy_async(to + swizzled(i), chunk + offsets_[k]);
    }
  }

 private:
  std::uint32_t offsets_[kCopies];
};

/// The product by matrix instructions. A block computes a tile of C over a part of the chunks, with
/// kWarpsM by kWarpsN warps of 16 kRowBlocks rows by 64 columns each. Lines are copied to shared memory
/// kStages - 1 chunks ahead, and loaded from there in the operand layout of the instruction.
template <class Op, unsigned kRowBlocks, unsigned kWarpsM, unsigned kWarpsN>
struct MatrixProduct {
  static constexpr unsigned kThreads = gpu::kWarp * kWarpsM * kWarpsN;
  static constexpr bool kCooperative = true;
  static constexpr unsigned kTileM = 16 * kRowBlocks * kWarpsM;
  static constexpr unsigned kTileN = 64 * kWarpsN;
  static constexpr unsigned kStages = 3;
  static constexpr unsigned kStageQuads = (kTileM + kTileN) * kLineQuads;

  ProductArguments<Op> of;
  Tiles tiles;

  MatrixProduct(const ProductArguments<Op>& arguments, std::uint64_t blocks)
      : of(arguments), tiles(of, kTileM, kTileN, blocks) {}

  std::size_t shared_bytes() const { return kStages * kStageQuads * sizeof(gpu::Quad); }
  gpu::Grid grid() const { return tiles.grid(); }

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const std::uint32_t m0 = tiles.row_tile(block.x()) * kTileM;
    const std::uint32_t n0 = tiles.column_tile(block.x()) * kTileN, bin = tiles.bin(block.x());
    const std::uint64_t begin = tiles.begin(block.y()), count = tiles.end(block.y()) - begin;
    auto* stages = reinterpret_cast<gpu::Quad*>(block.shared());
    const LineCopies<kTileM, kThreads> share_copies(block.thread(), m0, of.rows);
    const LineCopies<kTileN, kThreads> table_copies(block.thread(), n0, of.table.columns);
    const auto fetch = [&](std::uint64_t i) {
      gpu::Quad* stage = stages + i % kStages * kStageQuads;
      if (i < count) {
        share_copies.copy(block, of.share_lines(bin, begin + i), stage);
        table_copies.copy(block, of.table_line(bin, begin + i, 0), stage + kTileM * kLineQuads);
      }
      block.commit_copies();
    };
    const unsigned row = block.warp() / kWarpsN * 16 * kRowBlocks;
    const unsigned column = block.warp() % kWarpsN * 64;
    std::uint32_t c[kRowBlocks][8][4] = {};
    for (unsigned i = 0; i + 1 < kStages; ++i) fetch(i);
    for (std::uint64_t i = 0; i < count; ++i) {
      block.template wait_copies<kStages - 2>();
      block.sync();
      fetch(i + kStages - 1);
      multiply(block, stages + i % kStages * kStageQuads, row, column, c);
    }
    NESCIO_UNROLL
    for (unsigned r = 0; r < kRowBlocks; ++r) {
      add_up(block, of.sums_of(bin), m0 + row + 16 * r, n0 + column, c[r]);
    }
  }

 private:
  /// Adds the product of a chunk's lines. Half of each of 16 share lines is operand A of one
  /// instruction: lane l addresses quad l / 16 of line l % 16. Eight whole table lines are operand B of
  /// two instructions: lane l addresses quad l / 8 of line l % 8.
  template <gpu::ThreadBlock B>
  NESCIO_DEVICE static void multiply(B& block, const gpu::Quad* stage, unsigned row,
                                     unsigned column, std::uint32_t (&c)[kRowBlocks][8][4]) {
    const unsigned lane = block.lane();
    const gpu::Quad* shares = stage + row * kLineQuads;
    const gpu::Quad* table = stage + (kTileM + column) * kLineQuads;
    const unsigned share_quad = swizzled(lane % 16 * kLineQuads + lane / 16);
    const unsigned table_quad = swizzled(lane % 8 * kLineQuads + lane / 8);
    std::uint32_t a[kRowBlocks][2][4];
    NESCIO_UNROLL
    for (unsigned r = 0; r < kRowBlocks; ++r) {
      block.load_words(a[r][0], shares + 16 * r * kLineQuads + share_quad);
      block.load_words(a[r][1], shares + 16 * r * kLineQuads + (share_quad ^ 2));
    }
    NESCIO_UNROLL
    for (unsigned n = 0; n < 8; ++n) {
      std::uint32_t b[4];
      block.load_words(b, table + 8 * n * kLineQuads + table_quad);
      NESCIO_UNROLL
      for (unsigned r = 0; r < kRowBlocks; ++r) {
        Op::multiply(block, c[r][n], a[r][0], {b[0], b[1]});
        Op::multiply(block, c[r][n], a[r][1], {b[2], b[3]});
      }
    }
  }

  /// Adds 16 rows by 64 columns of C, from the registers of a warp, to the sums.
  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void add_up(B& block, typename Op::Sum* sums, std::uint32_t m0, std::uint32_t n0,
                            const std::uint32_t (&c)[8][4]) const {
    const std::uint64_t words = sum_words<Op>(of.table.columns);
    NESCIO_UNROLL
    for (unsigned half = 0; half < 2; ++half) {
      const std::uint32_t m = m0 + 8 * half + block.lane() / 4;
      if constexpr (Op::kBits) {
        flip_parities(block, sums, m, n0 / 32, words, half, c);
      } else {
        add_counts(block, sums, m, n0, words, half, c);
      }
    }
  }

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void add_counts(B& block, typename Op::Sum* sums, std::uint32_t m, std::uint32_t n0,
                                std::uint64_t words, unsigned half,
                                const std::uint32_t (&c)[8][4]) const {
    NESCIO_UNROLL
    for (unsigned n = 0; n < 8; ++n) {
      NESCIO_UNROLL
      for (unsigned i = 0; i < 2; ++i) {
        const std::uint32_t column = n0 + 8 * n + 2 * (block.lane() % 4) + i;
        if (m >= of.rows || column >= of.table.columns) continue;
        block.atomic_add(sums + m * words + column, typename Op::Sum{c[n][2 * half + i]});
      }
    }
  }

  /// Packs the parities of a row of C, two per lane and block of columns, and XORs them to the sums.
  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void flip_parities(B& block, typename Op::Sum* sums, std::uint32_t m,
                                   std::uint64_t first_word, std::uint64_t words, unsigned half,
                                   const std::uint32_t (&c)[8][4]) const {
    const unsigned t = block.lane() % 4;
    std::uint32_t packed[2] = {};
    NESCIO_UNROLL
    for (unsigned n = 0; n < 8; ++n) {
      const std::uint32_t two = (c[n][2 * half] & 1) | (c[n][2 * half + 1] & 1) << 1;
      packed[n / 4] |= two << (8 * (n % 4) + 2 * t);
    }
    NESCIO_UNROLL
    for (unsigned w = 0; w < 2; ++w) {
      packed[w] |= block.shuffle_xor(packed[w], 1);
      packed[w] |= block.shuffle_xor(packed[w], 2);
      if (t == 0 && m < of.rows && first_word + w < words) {
        block.atomic_xor(sums + m * words + first_word + w, packed[w]);
      }
    }
  }
};

}  // namespace nescio::pir
