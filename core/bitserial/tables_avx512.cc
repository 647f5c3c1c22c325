// Compiled for AVX-512, VNNI and VBMI. Includes nothing that could leave shared code behind.
#include "bitserial/tables_avx512.h"

#include <immintrin.h>

namespace nescio::bitserial::avx512 {
namespace {

constexpr std::size_t kTableBytes = 64;

/// Bytes of a product after the bias is added.
constexpr unsigned bytes_of(unsigned activation_bits) {
  return activation_bits == 8 ? 2 : activation_bits == 16 ? 3 : 5;
}

/// The bias that makes every product nonnegative: (3 + 3) 2^(k-1).
constexpr std::int64_t bias_of(unsigned activation_bits) {
  return std::int64_t{6} << (activation_bits - 1);
}

/// Lane i is `start` plus the sum of values[j] over the bits j of i that are set, for i from 0 to
/// 15.
inline __m512i subset_sums(int start, const int* values) {
  __m512i sums = _mm512_set1_epi32(start);
  sums = _mm512_mask_add_epi32(sums, 0xAAAA, sums, _mm512_set1_epi32(values[0]));
  sums = _mm512_mask_add_epi32(sums, 0xCCCC, sums, _mm512_set1_epi32(values[1]));
  sums = _mm512_mask_add_epi32(sums, 0xF0F0, sums, _mm512_set1_epi32(values[2]));
  return _mm512_mask_add_epi32(sums, 0xFF00, sums, _mm512_set1_epi32(values[3]));
}

template <int first, int last>
inline void store_bytes(__m512i sums, std::uint8_t* to) {
  for (int p = first; p < last; ++p, sums = _mm512_srli_epi32(sums, 8)) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + p * kTableBytes), _mm512_cvtepi32_epi8(sums));
  }
}

/// Writes the sixteen products for four bits of one byte of a lane. The values of the bits are
/// x[0], x[4], x[8] and x[12] or, with two bits per column, x[0], 2 x[0], x[4] and 2 x[4].
template <unsigned width, unsigned activation_bits>
inline void make_entries(const std::int32_t* x, std::uint8_t* to) {
  constexpr auto bias = static_cast<int>(bias_of(activation_bits) >> 16);
  int value[4], low[4], high[4];
  for (int i = 0; i < 4; ++i) {
    const std::int32_t from = width == 1 ? x[4 * i] : x[i / 2 * 4];
    const int twice = width == 1 ? 0 : i % 2;
    if constexpr (activation_bits < 32) {
      value[i] = from << twice;
    } else {
      low[i] = (from & 0xFFFF) << twice;
      high[i] = (from >> 16) << twice;
    }
  }
  if constexpr (activation_bits < 32) {
    store_bytes<0, bytes_of(activation_bits)>(
        subset_sums(static_cast<int>(bias_of(activation_bits)), value), to);
  } else {
    const __m512i sums = subset_sums(0, low);
    store_bytes<0, 2>(sums, to);
    store_bytes<2, 5>(_mm512_add_epi32(subset_sums(bias, high), _mm512_srli_epi32(sums, 16)), to);
  }
}

template <unsigned width, unsigned activation_bits>
void make(const std::int32_t* x, std::size_t columns, std::uint8_t* tables) {
  constexpr std::size_t half = chunk_columns(width) / 2;
  for (std::size_t first = 0; first < columns; first += 2 * half) {
    std::int32_t values[2 * half];
    for (std::size_t j = 0; j < 2 * half; ++j) values[j] = first + j < columns ? x[first + j] : 0;
    for (std::size_t h = 0; h < 2; ++h, tables += bytes_of(activation_bits) * kTableBytes) {
      for (std::size_t g = 0; g < 4; ++g) {
        make_entries<width, activation_bits>(values + h * half + g, tables + 16 * g);
      }
    }
  }
}

/// Adds the products of `rows` registers of each chunk and `vectors` vectors.
template <int bytes, int vectors, int rows>
inline void look_up(const PackedPart& packed, std::size_t from, const std::uint8_t* tables,
                    std::size_t stride, std::int64_t (*totals)[kBlockRows]) {
  const __m512i half = _mm512_set1_epi8(15), table_of_byte = _mm512_set1_epi32(0x30201000);
  const __m512i ones = _mm512_set1_epi8(1);
  const std::size_t chunks = chunks_of(packed.columns, packed.width);
  const std::uint8_t* data = packed.data + from * kRegisterBytes;
  __m512i sums[rows][vectors][bytes];
  for (auto& row : sums) {
    for (auto& vector : row) {
      for (__m512i& sum : vector) sum = _mm512_setzero_si512();
    }
  }
  for (std::size_t c = 0; c < chunks; ++c, data += packed.registers * kRegisterBytes) {
    __m512i bits[rows];
    for (int r = 0; r < rows; ++r) bits[r] = _mm512_load_si512(data + r * kRegisterBytes);
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h, tables += bytes * kTableBytes) {
      __m512i index[rows];
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
        const __m512i shifted = h == 0 ? bits[r] : _mm512_srli_epi32(bits[r], 4);
        index[r] = _mm512_ternarylogic_epi32(shifted, half, table_of_byte, 0xEA);  // AND, then OR
      }
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) {
#pragma GCC unroll 5
        for (int p = 0; p < bytes; ++p) {
          const __m512i table = _mm512_load_si512(tables + v * stride + p * kTableBytes);
#pragma GCC unroll 4
          for (int r = 0; r < rows; ++r) {
            sums[r][v][p] =
                _mm512_dpbusd_epi32(sums[r][v][p], _mm512_permutexvar_epi8(index[r], table), ones);
          }
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
#pragma GCC unroll 5
      for (unsigned p = 0; p < bytes; ++p) {
        add_sums(sums[r][v][p], 8 * p + packed.exponent, totals[v] + (from + r) * kRegisterRows);
      }
    }
  }
}

template <int bytes, int vectors>
void look_up_block(const PackedPart& packed, const std::uint8_t* tables, std::size_t stride,
                   std::int64_t (*totals)[kBlockRows]) {
  std::size_t r = 0;
  for (; r + 4 <= packed.registers; r += 4) {
    look_up<bytes, vectors, 4>(packed, r, tables, stride, totals);
  }
  for (; r < packed.registers; ++r) {
    look_up<bytes, vectors, 1>(packed, r, tables, stride, totals);
  }
}

template <int bytes, int per_pass>
void look_up_all(const PackedPart& packed, const std::uint8_t* tables, std::size_t stride,
                 std::size_t vectors, Totals& totals) {
  std::size_t v = 0;
  for (; v + per_pass <= vectors; v += per_pass) {
    look_up_block<bytes, per_pass>(packed, tables + v * stride, stride, totals + v);
  }
  for (; v < vectors; ++v) {
    look_up_block<bytes, 1>(packed, tables + v * stride, stride, totals + v);
  }
}

}  // namespace

std::size_t tables_bytes(std::size_t columns, unsigned width, unsigned activation_bits) {
  return chunks_of(columns, width) * 2 * bytes_of(activation_bits) * kTableBytes;
}

void make_tables(const std::int32_t* x, std::size_t columns, unsigned width,
                 unsigned activation_bits, std::uint8_t* tables) {
  if (width == 1) {
    if (activation_bits == 8) return make<1, 8>(x, columns, tables);
    if (activation_bits == 16) return make<1, 16>(x, columns, tables);
    return make<1, 32>(x, columns, tables);
  }
  if (activation_bits == 8) return make<2, 8>(x, columns, tables);
  if (activation_bits == 16) return make<2, 16>(x, columns, tables);
  return make<2, 32>(x, columns, tables);
}

void add_lookups(const PackedPart& packed, const std::uint8_t* tables, std::size_t stride,
                 std::size_t vectors, unsigned activation_bits, Totals& totals) {
  // A 32-bit sum grows by at most 4 * 2 * 255 per chunk, so that 2^20 chunks fit in 31 bits.
  const std::size_t lookups = 8 * chunks_of(packed.columns, packed.width);
  const std::int64_t bias = (bias_of(activation_bits) * static_cast<std::int64_t>(lookups))
                            << packed.exponent;
  for (std::size_t v = 0; v < vectors; ++v) {
    add_to_all(-bias, packed.registers * kRegisterRows, totals[v]);
  }
  if (activation_bits == 8) return look_up_all<2, 2>(packed, tables, stride, vectors, totals);
  if (activation_bits == 16) return look_up_all<3, 2>(packed, tables, stride, vectors, totals);
  return look_up_all<5, 1>(packed, tables, stride, vectors, totals);
}

}  // namespace nescio::bitserial::avx512
