#pragma once

// Shared parts of the AVX-512 files. Everything here is private to the including file.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "bitserial/fields.h"
#include "bitserial/product.h"

namespace nescio::bitserial::avx512 {

/// One part (fields.h) of a block.
struct PackedPart {
  const std::uint8_t* data;
  std::size_t registers;  // per chunk: 1 to 4
  std::size_t columns;
  unsigned width;
  unsigned exponent;
};

/// Sums of the rows of a block, for each vector.
using Totals = std::int64_t[kMaxVectors][kBlockRows];

namespace {

/// Adds 16 sums, times 2^shift, to totals.
inline void add_sums(__m512i sums, unsigned shift, std::int64_t* totals) {
  const __m512i low = _mm512_cvtepi32_epi64(_mm512_castsi512_si256(sums));
  const __m512i high = _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(sums, 1));
  _mm512_storeu_si512(totals,
                      _mm512_add_epi64(_mm512_loadu_si512(totals), _mm512_slli_epi64(low, shift)));
  _mm512_storeu_si512(
      totals + 8, _mm512_add_epi64(_mm512_loadu_si512(totals + 8), _mm512_slli_epi64(high, shift)));
}

inline void add_to_all(std::int64_t value, std::size_t rows, std::int64_t* totals) {
  const __m512i added = _mm512_set1_epi64(value);
  for (std::size_t i = 0; i < rows; i += 8) {
    _mm512_storeu_si512(totals + i, _mm512_add_epi64(_mm512_loadu_si512(totals + i), added));
  }
}

/// Sets sums[r][i][f] to the products of field f of `chunks` chunks of registers and digit vectors,
/// from a column on.
template <int fields, int digits, int rows>
[[gnu::always_inline]] inline void multiply_fields(const std::uint8_t* data, std::size_t step,
                                                   std::size_t chunks,
                                                   const std::int8_t* const* digit,
                                                   std::size_t column,
                                                   __m512i (&sums)[rows][digits][fields]) {
  constexpr int width = 8 / fields;
  __m512i masks[fields];
#pragma GCC unroll 8
  for (int f = 0; f < fields; ++f) {
    masks[f] = _mm512_set1_epi8(static_cast<char>(((1 << width) - 1) << (width * f)));
  }
  for (auto& row : sums) {
    for (auto& one : row) {
      for (__m512i& sum : one) sum = _mm512_setzero_si512();
    }
  }
  for (std::size_t c = 0; c < chunks; ++c, data += step) {
    __m512i bits[rows];
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) bits[r] = _mm512_load_si512(data + r * kRegisterBytes);
#pragma GCC unroll 8
    for (int f = 0; f < fields; ++f) {
      __m512i x[digits];
#pragma GCC unroll 4
      for (int i = 0; i < digits; ++i) {
        int four = 0;
        __builtin_memcpy(&four, digit[i] + column + (c * fields + f) * 4, sizeof(four));
        x[i] = _mm512_set1_epi32(four);
      }
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
        const __m512i field = fields == 1 ? bits[r] : _mm512_and_si512(bits[r], masks[f]);
#pragma GCC unroll 4
        for (int i = 0; i < digits; ++i) {
          sums[r][i][f] = _mm512_dpbusd_epi32(sums[r][i][f], field, x[i]);
        }
      }
    }
  }
}

/// Adds the sums of all fields, which have the weight 2^(w f).
template <int fields>
[[gnu::always_inline]] inline __m512i joined(const __m512i (&sums)[fields]) {
  __m512i sum = sums[fields - 1];
#pragma GCC unroll 8
  for (int f = fields - 2; f >= 0; --f) {
    sum = _mm512_add_epi32(_mm512_srai_epi32(sum, 8 / fields), sums[f]);
  }
  return sum;
}

}  // namespace
}  // namespace nescio::bitserial::avx512
