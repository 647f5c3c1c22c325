// Compiled for AVX-512 and GFNI. Must not define functions that other tiers share (scripts/check_tiers.py).
#include <immintrin.h>

#include "pir/product/bit_product.h"
#include "pir/sliced.h"

// GF2P8AFFINEQB multiplies an 8 x 8 bit matrix with each byte of a register. With eight keys' shares of
// eight rows as the matrix and a line of the table, 64 columns of those rows, as the bytes, one
// instruction sums 4,096 products.

namespace nescio::pir::avx512 {
namespace {

constexpr std::size_t kMatrices = kLines;  // per group

// With few keys a block of 4 KB is processed in less time than the memory latency, and the hardware
// prefetcher stops at a page boundary: prefetch the block after the next.
constexpr std::size_t kBlocksAhead = 2;

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

inline __m512i multiply(__m512i line, std::uint64_t matrix) {
  __m512i all = _mm512_set1_epi64(static_cast<long long>(matrix));
#if defined(__clang__)
  // Clang 16 folds the load of the matrix into the instruction and encodes its displacement eight
  // times too large: keep the two instructions separate.
  asm("" : "+v"(all));
#endif
  return _mm512_gf2p8affine_epi64_epi8(line, all, 0);
}

/// Adds a block to the sums of `groups` groups, which are `sum_stride` bytes apart.
template <int groups>
inline void add_block(const std::uint8_t* block, std::size_t lines, const std::uint64_t* matrices,
                      std::uint8_t* sums, std::size_t sum_stride) {
  __m512i total[groups];
  for (int g = 0; g < groups; ++g) total[g] = _mm512_load_si512(sums + g * sum_stride);
  for (std::size_t r = 0; r < lines; r += 2) {
    const __m512i line0 = _mm512_loadu_si512(block + 64 * r);
    const __m512i line1 = _mm512_loadu_si512(block + 64 * r + 64);
    _mm_prefetch(block + 64 * (kBlocksAhead * lines + r), _MM_HINT_T0);
    _mm_prefetch(block + 64 * (kBlocksAhead * lines + r + 1), _MM_HINT_T0);
#pragma GCC unroll 16
    for (int g = 0; g < groups; ++g) {
      total[g] = _mm512_ternarylogic_epi64(total[g], multiply(line0, matrices[g * kMatrices + r]),
                                           multiply(line1, matrices[g * kMatrices + r + 1]), 0x96);
    }
  }
  for (int g = 0; g < groups; ++g) _mm512_store_si512(sums + g * sum_stride, total[g]);
}

/// Adds a block to the sums of all groups, as many at a time as registers hold.
inline void add_all(const std::uint8_t* block, std::size_t lines, const std::uint64_t* matrices,
                    std::size_t groups, std::uint8_t* sums, std::size_t sum_stride) {
  while (groups > 0) {
    std::size_t done = 1;
    if (groups >= 16) {
      add_block<16>(block, lines, matrices, sums, sum_stride);
      done = 16;
    } else if (groups >= 8) {
      add_block<8>(block, lines, matrices, sums, sum_stride);
      done = 8;
    } else if (groups >= 4) {
      add_block<4>(block, lines, matrices, sums, sum_stride);
      done = 4;
    } else if (groups >= 2) {
      add_block<2>(block, lines, matrices, sums, sum_stride);
      done = 2;
    } else {
      add_block<1>(block, lines, matrices, sums, sum_stride);
    }
    matrices += done * kMatrices;
    sums += done * sum_stride;
    groups -= done;
  }
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

void add_tile(const Tile& tile, const std::uint8_t* scratch, std::size_t keys, std::uint8_t* sums) {
  const auto* matrices = reinterpret_cast<const std::uint64_t*>(scratch);
  const std::size_t groups = key_groups(keys);
  for (std::size_t block = 0; block < tile.blocks; ++block) {
    add_all(tile.block(block), tile.lines, matrices, groups, sums + 64 * block, 64 * tile.blocks);
  }
}

constexpr BitProduct kBitProduct = {kKeyGroup, scratch_bytes, lay_out, add_tile, read_group_sums};

}  // namespace nescio::pir::avx512
