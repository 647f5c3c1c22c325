#pragma once

// The product of share lines with table lines without matrix instructions, also used by fused walks:
// LOP3 for bits, four products of bytes at a time for words.

#include <cstddef>
#include <cstdint>

#include "pir/gpu/product_gpu.h"

namespace nescio::pir {

/// Returns c plus the product of two lines.
template <class Op, gpu::ThreadBlock B>
NESCIO_DEVICE inline std::uint32_t dot_lines(const gpu::Quad* shares, const gpu::Quad* table,
                                             std::uint32_t c) {
  NESCIO_UNROLL
  for (unsigned q = 0; q < 4; ++q) {
    const gpu::Quad a = shares[q], b = table[q];
    NESCIO_UNROLL
    for (unsigned i = 0; i < 4; ++i) c = Op::template dot<B>(a.w[i], b.w[i], c);
  }
  return c;
}

/// Adds the results of a warp for row m and 32 neighbouring columns, some of which may be beyond the
/// last column of the table.
template <class Op, gpu::ThreadBlock B>
NESCIO_DEVICE inline void add_columns(B& block, std::uint64_t m, const LineTable& table,
                                      std::uint32_t column, std::uint32_t value,
                                      typename Op::Sum* sums) {
  auto* row = sums + m * sum_words<Op>(table.columns);
  if constexpr (Op::kBits) {
    const std::uint32_t word = block.ballot(Op::parity(value) != 0);
    if (block.lane() == 0) block.atomic_xor(row + column / 32, word);
  } else {
    if (column < table.columns) block.atomic_add(row + column, typename Op::Sum{value});
  }
}

/// The product for eight rows of C and 128 columns over a part of the chunks. One thread per column.
template <class Op>
struct PlainProduct {
  static constexpr unsigned kThreads = 128;
  static constexpr bool kCooperative = true;
  static constexpr unsigned kTileM = 8;
  static constexpr unsigned kStageChunks = 8;  // chunks whose shares are in shared memory

  ProductArguments<Op> of;
  Tiles tiles;

  PlainProduct(const ProductArguments<Op>& arguments, std::uint64_t blocks)
      : of(arguments), tiles(of, kTileM, kThreads, blocks) {}

  std::size_t shared_bytes() const {
    return kStageChunks * kTileM * kLineQuads * sizeof(gpu::Quad);
  }
  gpu::Grid grid() const { return tiles.grid(); }

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const std::uint32_t m0 = tiles.row_tile(block.x()) * kTileM, bin = tiles.bin(block.x());
    const std::uint32_t column = tiles.column_tile(block.x()) * kThreads + block.thread();
    const std::uint32_t last = of.table.columns - 1, own = column < last ? column : last;
    const std::uint64_t begin = tiles.begin(block.y()), end = tiles.end(block.y());
    auto* shares = reinterpret_cast<gpu::Quad*>(block.shared());
    std::uint32_t c[kTileM] = {};
    for (std::uint64_t chunk = begin; chunk < end; chunk += kStageChunks) {
      const auto count =
          static_cast<unsigned>(end - chunk < kStageChunks ? end - chunk : kStageChunks);
      load_shares(block, bin, m0, chunk, count, shares);
      block.sync();
      for (unsigned i = 0; i < count; ++i) {
        const gpu::Quad* line = of.table_line(bin, chunk + i, own);
        NESCIO_UNROLL
        for (unsigned m = 0; m < kTileM; ++m) {
          if (m0 + m >= of.rows) continue;
          c[m] = dot_lines<Op, B>(shares + (i * kTileM + m) * kLineQuads, line, c[m]);
        }
      }
      block.sync();
    }
    if (column - block.lane() > last) return;  // uniform in a warp
    NESCIO_UNROLL
    for (unsigned m = 0; m < kTileM; ++m) {
      if (m0 + m >= of.rows) continue;
      add_columns<Op>(block, m0 + m, of.table, column, c[m], of.sums_of(bin));
    }
  }

 private:
  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void load_shares(B& block, std::uint32_t bin, std::uint32_t m0, std::uint64_t chunk,
                                 unsigned count, gpu::Quad* shares) const {
    for (unsigned i = block.thread(); i < count * kTileM * kLineQuads; i += kThreads) {
      const unsigned line = i / kLineQuads, m = line % kTileM;
      if (m0 + m >= of.rows) continue;
      const gpu::Quad* from = of.share_lines(bin, chunk + line / kTileM);
      shares[i] = from[(m0 + m) * kLineQuads + i % kLineQuads];
    }
  }
};

/// Combines the sums of the planes of each key to its answer. One thread per word of `element_bytes`.
struct FinishWords {
  static constexpr unsigned kThreads = 128;
  static constexpr bool kCooperative = false;

  const std::uint64_t* sums;
  std::uint32_t keys;
  std::uint32_t columns;
  std::uint32_t element_bytes;
  std::uint32_t words;  ///< words of an answer
  std::uint8_t* answers;

  gpu::Grid grid() const {
    return {static_cast<std::uint32_t>(ceil_div(std::uint64_t{keys} * words, kThreads)), 1};
  }

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const std::uint64_t id = std::uint64_t{block.x()} * kThreads + block.thread();
    if (id >= std::uint64_t{keys} * words) return;
    const std::uint64_t key = id / words, word = id % words;
    dpf::Wide total = {0, 0};
    for (unsigned i = 0; i < element_bytes; ++i) {
      const std::uint64_t* row = sums + (key * element_bytes + i) * columns + word * element_bytes;
      for (unsigned j = 0; i + j < element_bytes; ++j) {
        total = total + shifted(row[j], 8 * (i + j));
      }
    }
    for (unsigned i = 0; i < element_bytes; ++i) {
      answers[id * element_bytes + i] = static_cast<std::uint8_t>(dpf::byte_of(total, i));
    }
  }

 private:
  NESCIO_INLINE static dpf::Wide shifted(std::uint64_t x, unsigned bits) {
    if (bits == 0) return {x, 0};
    if (bits < 64) return {x << bits, x >> (64 - bits)};
    return {0, x << (bits - 64)};
  }
};

}  // namespace nescio::pir
