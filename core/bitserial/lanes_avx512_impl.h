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

}  // namespace
}  // namespace nescio::bitserial::avx512
