// Compiled for AVX-512 and GFNI. Must not define functions that other tiers share (scripts/check_tiers.py).
#include <immintrin.h>

#include "pir/product/bit_product.h"
#include "pir/sliced.h"
#include "pir/slicer.h"

// GF2P8AFFINEQB multiplies an 8 x 8 bit matrix with each byte of a register. With eight keys' shares of
// eight rows as the matrix and a line of the table, 64 columns of those rows, as the bytes, one
// instruction sums 4,096 products.

namespace nescio::pir::avx512 {
namespace {

constexpr std::size_t kMatrices = kLines;  // per group

// With few keys a block of 4 KB is processed in less time than the memory latency, and the hardware
// prefetcher stops at a page boundary: prefetch the block after the next.
constexpr std::size_t kBlocksAhead = 2;

// With more keys, reading and products take about as long. Lines are then also fetched to the
// second-level cache, so far ahead that a slow read does not stop the products.
constexpr std::size_t kFarAhead = 16 << 10;

/// Groups whose sums of two blocks fit in registers.
constexpr std::size_t kMostGroups = 8;

/// The matrices of a group of up to eight keys: byte 7 - q of word r is key q's byte r, because the
/// instruction takes row 0 of a matrix from its highest byte.
void make_matrices(const std::uint8_t* shares, std::size_t stride, std::size_t keys,
                   std::uint64_t* matrices) {
  __m512i x[8], y[8];
  for (std::size_t q = 0; q < kKeyGroup; ++q) {
    x[7 - q] = q < keys ? _mm512_loadu_si512(shares + q * stride) : _mm512_setzero_si512();
  }
  for (int i = 0; i < 4; ++i) {
    y[i] = _mm512_unpacklo_epi8(x[2 * i], x[2 * i + 1]);
    y[4 + i] = _mm512_unpackhi_epi8(x[2 * i], x[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    for (int half = 0; half < 2; ++half) {
      x[4 * half + i] = _mm512_unpacklo_epi16(y[4 * half + 2 * i], y[4 * half + 2 * i + 1]);
      x[4 * half + 2 + i] = _mm512_unpackhi_epi16(y[4 * half + 2 * i], y[4 * half + 2 * i + 1]);
    }
  }
  for (int i = 0; i < 4; ++i) {
    y[2 * i] = _mm512_unpacklo_epi32(x[2 * i], x[2 * i + 1]);
    y[2 * i + 1] = _mm512_unpackhi_epi32(x[2 * i], x[2 * i + 1]);
  }
  // Quarter p of y[i] holds the words of lines 16 p + 2 i and the next: put the quarters in order.
  for (int i = 0; i < 8; i += 4) {
    const __m512i low01 = _mm512_shuffle_i64x2(y[i], y[i + 1], 0x44);
    const __m512i low23 = _mm512_shuffle_i64x2(y[i + 2], y[i + 3], 0x44);
    const __m512i high01 = _mm512_shuffle_i64x2(y[i], y[i + 1], 0xEE);
    const __m512i high23 = _mm512_shuffle_i64x2(y[i + 2], y[i + 3], 0xEE);
    std::uint64_t* to = matrices + 2 * i;
    _mm512_storeu_si512(to, _mm512_shuffle_i64x2(low01, low23, 0x88));
    _mm512_storeu_si512(to + 16, _mm512_shuffle_i64x2(low01, low23, 0xDD));
    _mm512_storeu_si512(to + 32, _mm512_shuffle_i64x2(high01, high23, 0x88));
    _mm512_storeu_si512(to + 48, _mm512_shuffle_i64x2(high01, high23, 0xDD));
  }
}

inline __m512i broadcast(std::uint64_t matrix) {
  __m512i all = _mm512_set1_epi64(static_cast<long long>(matrix));
#if defined(__clang__)
  // Clang 16 folds the load of the matrix into the product and encodes its displacement eight times
  // too large: keep the two instructions separate.
  asm("" : "+v"(all));
#endif
  return all;
}

/// Adds `blocks` consecutive blocks to the sums of `groups` groups, which are `sum_stride` bytes apart.
///
/// A matrix is loaded once for all blocks, and a line once for all groups: 8 groups and 2 blocks take
/// 5 loads for 8 products, where one block takes more than a load for each, and the machine can do two
/// of either per cycle. Prefetches `prefetches` lines from `ahead` on for every two lines of a block; with
/// `far` also lines to the second-level cache.
template <int groups, int blocks, int prefetches, bool far>
inline void add_blocks(const std::uint8_t* block, std::size_t lines, const std::uint64_t* matrices,
                       std::uint8_t* sums, std::size_t sum_stride, const std::uint8_t* ahead) {
  __m512i total[groups][blocks], line0[blocks], line1[blocks];
#pragma GCC unroll 16
  for (int g = 0; g < groups; ++g) {
#pragma GCC unroll 4
    for (int b = 0; b < blocks; ++b) {
      total[g][b] = _mm512_load_si512(sums + g * sum_stride + b * kLineBytes);
    }
  }
  for (std::size_t r = 0; r < lines; r += 2) {
    for (int b = 0; b < blocks; ++b) {
      line0[b] = _mm512_loadu_si512(block + kLineBytes * (b * lines + r));
      line1[b] = _mm512_loadu_si512(block + kLineBytes * (b * lines + r + 1));
    }
    for (int k = 0; k < prefetches; ++k, ahead += kLineBytes) {
      _mm_prefetch(ahead, _MM_HINT_T0);
      if constexpr (far) _mm_prefetch(ahead + kFarAhead, _MM_HINT_T1);
    }
#pragma GCC unroll 16
    for (int g = 0; g < groups; ++g) {
      const __m512i matrix0 = broadcast(matrices[g * kMatrices + r]);
      const __m512i matrix1 = broadcast(matrices[g * kMatrices + r + 1]);
#pragma GCC unroll 4
      for (int b = 0; b < blocks; ++b) {
        total[g][b] = _mm512_ternarylogic_epi64(
            total[g][b], _mm512_gf2p8affine_epi64_epi8(line0[b], matrix0, 0),
            _mm512_gf2p8affine_epi64_epi8(line1[b], matrix1, 0), 0x96);
      }
    }
  }
#pragma GCC unroll 16
  for (int g = 0; g < groups; ++g) {
#pragma GCC unroll 4
    for (int b = 0; b < blocks; ++b) {
      _mm512_store_si512(sums + g * sum_stride + b * kLineBytes, total[g][b]);
    }
  }
}

/// add_blocks for 1 to `most` groups.
template <int blocks, int prefetches, std::size_t most = kMostGroups>
inline void add_groups(const std::uint8_t* block, std::size_t lines, const std::uint64_t* matrices,
                       std::size_t groups, std::uint8_t* sums, std::size_t sum_stride,
                       const std::uint8_t* ahead) {
  if (groups == most) {
    add_blocks<most, blocks, prefetches, true>(block, lines, matrices, sums, sum_stride, ahead);
  } else if constexpr (most > 1) {
    add_groups<blocks, prefetches, most - 1>(block, lines, matrices, groups, sums, sum_stride,
                                             ahead);
  }
}

/// Adds blocks in `passes` over about as many groups each. Every pass prefetches from `step` bytes
/// after the pass before.
template <int blocks, int prefetches>
inline void add_passes(const std::uint8_t* block, std::size_t lines, const std::uint64_t* matrices,
                       std::size_t groups, std::uint8_t* sums, std::size_t sum_stride,
                       std::size_t passes, std::size_t step) {
  const std::uint8_t* ahead = block + kBlocksAhead * lines * kLineBytes;
  for (; passes > 0; --passes, ahead += step) {
    const std::size_t some = ceil_div(groups, passes);
    add_groups<blocks, prefetches>(block, lines, matrices, some, sums, sum_stride, ahead);
    matrices += some * kMatrices;
    sums += some * sum_stride;
    groups -= some;
  }
}

/// Adds blocks to the sums of any number of groups. With 2 or 3 groups, reading is the limit: there are
/// two passes, and both prefetch all lines, because some prefetches are lost while memory is busy. With
/// 6 or 7, one pass is faster than two. With other numbers, the passes share the lines.
template <int blocks>
inline void add_all(const std::uint8_t* block, std::size_t lines, const std::uint64_t* matrices,
                    std::size_t groups, std::uint8_t* sums, std::size_t sum_stride) {
  constexpr int kAll = 2 * blocks;  // lines to prefetch for two lines of each block
  const std::size_t passes = groups <= kMostGroups ? 2 : ceil_div(groups, kMostGroups);
  if (groups == 1) {
    add_blocks<1, blocks, kAll, false>(block, lines, matrices, sums, sum_stride,
                                       block + kBlocksAhead * lines * kLineBytes);
  } else if (groups < 4) {
    add_passes<blocks, kAll>(block, lines, matrices, groups, sums, sum_stride, 2, 0);
  } else if (groups == 6 || groups == 7) {
    add_passes<blocks, kAll>(block, lines, matrices, groups, sums, sum_stride, 1, 0);
  } else if (passes < 4) {
    add_passes<blocks, kAll / 2>(block, lines, matrices, groups, sums, sum_stride, passes,
                                 kAll / 2 * lines / 2 * kLineBytes);
  } else {
    add_passes<blocks, 1>(block, lines, matrices, groups, sums, sum_stride, passes,
                          lines / 2 * kLineBytes);
  }
}

/// The lines of a group's sums, one for each block, are a tile of eight rows: those of its keys.
void read_sums(const std::uint8_t* sums, std::size_t first, std::size_t count,
               std::size_t row_bytes, std::uint8_t* rows) {
  const std::uint8_t* own = sums + first / kKeyGroup * block_count(row_bytes) * kLineBytes;
  kSlicer.unslice(own, 1, count, row_bytes, rows);
}

}  // namespace

std::size_t scratch_bytes(std::size_t keys) { return key_groups(keys) * kMatrices * 8; }

void lay_out(const std::uint8_t* shares, std::size_t stride, std::size_t keys,
             std::uint8_t* scratch) {
  auto* matrices = reinterpret_cast<std::uint64_t*>(scratch);
  for (std::size_t q = 0; q < keys; q += kKeyGroup, matrices += kMatrices) {
    make_matrices(shares + q * stride, stride, keys - q, matrices);
  }
}

void copy_shares(const std::uint8_t* scratch, std::size_t keys, std::span<const RowPlace> rows,
                 const std::uint8_t* masks, std::uint8_t* out, std::size_t stride) {
  const auto* matrices = reinterpret_cast<const std::uint64_t*>(scratch);
  for (std::size_t q = 0; q < keys; q += kKeyGroup, ++masks, out += stride) {
    const std::uint64_t* own = matrices + q / kKeyGroup * kMatrices;
    if (*masks == 0) continue;
    for (const RowPlace& at : rows) {
      const std::uint64_t matrix = own[at.row % kTileRows / kGroupRows];
      // The lowest bits of bytes 7 to 0 become bits 0 to 7 of the highest byte.
      const std::uint64_t bits = matrix >> at.row % kGroupRows & 0x0101010101010101ull;
      out[at.place] = static_cast<std::uint8_t>(bits * 0x8040201008040201ull >> 56) & *masks;
    }
  }
}

void lay_out_copies(const std::uint8_t* copies, std::size_t stride, std::size_t lines,
                    std::size_t keys, std::uint8_t* scratch) {
  // Byte 7 - q of a matrix has bit q of each of eight copies: the product of these, as a matrix whose
  // row 0 is its highest byte, with the byte 1 << q.
  const __m512i select = _mm512_set1_epi64(0x0102040810204080ll);
  const __m512i reverse =
      _mm512_broadcast_i32x4(_mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8));
  auto* matrices = reinterpret_cast<std::uint64_t*>(scratch);
  for (std::size_t q = 0; q < keys; q += kKeyGroup, matrices += kMatrices, copies += stride) {
    for (std::size_t r = 0; r < lines; r += 8) {
      const __m512i rows = _mm512_loadu_si512(copies + r * kGroupRows);
      _mm512_storeu_si512(matrices + r, _mm512_gf2p8affine_epi64_epi8(
                                            select, _mm512_shuffle_epi8(rows, reverse), 0));
    }
  }
}

void add_tile(const Tile& tile, const std::uint8_t* scratch, std::size_t keys, std::uint8_t* sums) {
  const auto* matrices = reinterpret_cast<const std::uint64_t*>(scratch);
  const std::size_t groups = key_groups(keys);
  const std::size_t stride = kLineBytes * tile.blocks;
  std::size_t block = 0;
  if (groups > 1) {
    for (; block + 2 <= tile.blocks; block += 2, sums += 2 * kLineBytes) {
      add_all<2>(tile.block(block), tile.lines, matrices, groups, sums, stride);
    }
  }
  for (; block < tile.blocks; ++block, sums += kLineBytes) {
    add_all<1>(tile.block(block), tile.lines, matrices, groups, sums, stride);
  }
}

constexpr BitProduct kBitProduct = {kKeyGroup,      scratch_bytes, lay_out,  copy_shares,
                                    lay_out_copies, add_tile,      read_sums};

}  // namespace nescio::pir::avx512
