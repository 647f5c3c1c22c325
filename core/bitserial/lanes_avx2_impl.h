#pragma once

// Shared parts of the AVX2 files. Everything here is private to the including file.
//
// Fields are shifted down. VPMADDUBSW multiplies 32 weights by 4 activations, the same in every
// lane, and adds products in pairs of 16 bits. A 16-bit sum holds up to 32,767, so that several
// pairs are added before they are widened to lanes of 32 bits; parts have at most 4 bits.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "bitserial/fields.h"
#include "bitserial/product.h"

namespace nescio::bitserial::avx2 {
namespace {

constexpr unsigned kMaxWidth = 4;

/// One part (fields.h) of a block.
struct PackedPart {
  const std::uint8_t* data;
  std::size_t registers;  // per chunk: 1 to 4
  std::size_t columns;
  unsigned width;
  unsigned exponent;
};

inline __m256i load(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}

inline void store(void* to, __m256i value) {
  _mm256_storeu_si256(static_cast<__m256i*>(to), value);
}

inline void add_to(std::int64_t* totals, __m256i four) {
  store(totals, _mm256_add_epi64(load(totals), four));
}

/// Adds 8 sums, times 2^shift, to totals.
inline void add_sums(__m256i sums, unsigned shift, std::int64_t* totals) {
  const __m256i low = _mm256_cvtepi32_epi64(_mm256_castsi256_si128(sums));
  const __m256i high = _mm256_cvtepi32_epi64(_mm256_extracti128_si256(sums, 1));
  add_to(totals, _mm256_slli_epi64(low, static_cast<int>(shift)));
  add_to(totals + 4, _mm256_slli_epi64(high, static_cast<int>(shift)));
}

// ---- Products of parts and digits ---------------------------------------------------------------

/// Adds the products of chunks, few enough that 16-bit sums do not overflow, to 32-bit sums. Not
/// inlined, because the compiler would run out of registers.
template <int width>
[[gnu::noinline]] void multiply_chunks(const std::uint8_t* data, std::size_t step,
                                       std::size_t chunks, const std::uint8_t* x, __m256i* sums) {
  const __m256i mask = _mm256_set1_epi8((1 << width) - 1), ones = _mm256_set1_epi16(1);
  __m256i pairs[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
  for (std::size_t c = 0; c < chunks; ++c, data += step) {
    const __m256i bits[2] = {load(data), load(data + 32)};
#pragma GCC unroll 8
    for (int f = 0; f < 8 / width; ++f, x += 4) {
      int four = 0;
      __builtin_memcpy(&four, x, sizeof(four));
      const __m256i digits = _mm256_set1_epi32(four);
      for (int half = 0; half < 2; ++half) {
        const __m256i field = _mm256_and_si256(_mm256_srli_epi16(bits[half], width * f), mask);
        pairs[half] = _mm256_add_epi16(pairs[half], _mm256_maddubs_epi16(field, digits));
      }
    }
  }
  for (int half = 0; half < 2; ++half) {
    sums[half] = _mm256_add_epi32(sums[half], _mm256_madd_epi16(pairs[half], ones));
  }
}

/// Adds the products of a block and one digit of a vector, in runs of columns for all rows.
template <int width>
void multiply_digit(const PackedPart& packed, const std::uint8_t* x, unsigned shift,
                    std::int64_t* totals) {
  // A field adds at most 2 (2^w - 1) 128 to a pair, and a chunk has 8 / w fields.
  constexpr std::size_t run = 32767 / (2 * ((1 << width) - 1) * 128) / (8 / width);
  constexpr std::size_t slice = kSliceColumns / chunk_columns(width);
  const std::size_t chunks = chunks_of(packed.columns, width);
  const std::size_t step = packed.registers * kRegisterBytes;
  for (std::size_t first = 0; first < chunks; first += slice) {
    const std::size_t last = chunks - first < slice ? chunks : first + slice;
    __m256i sums[kBlockRegisters][2] = {};
    for (std::size_t c = first; c < last; c += run) {
      const std::size_t count = last - c < run ? last - c : run;
      for (std::size_t r = 0; r < packed.registers; ++r) {
        multiply_chunks<width>(packed.data + c * step + r * kRegisterBytes, step, count,
                               x + c * chunk_columns(width), sums[r]);
      }
    }
    for (std::size_t r = 0; r < packed.registers; ++r) {
      add_sums(sums[r][0], shift, totals + r * kRegisterRows);
      add_sums(sums[r][1], shift, totals + r * kRegisterRows + 8);
    }
  }
}

void multiply_digit(const PackedPart& packed, const std::uint8_t* x, unsigned shift,
                    std::int64_t* totals) {
  switch (packed.width) {
    case 4: return multiply_digit<4>(packed, x, shift, totals);
    case 2: return multiply_digit<2>(packed, x, shift, totals);
    default: return multiply_digit<1>(packed, x, shift, totals);
  }
}

}  // namespace
}  // namespace nescio::bitserial::avx2
