// Compiled for AVX2. Includes nothing that could leave shared code behind.
#include <immintrin.h>

#include "bitserial/fields.h"
#include "bitserial/product.h"

// Fields are shifted down. VPMADDUBSW multiplies 32 weights by 4 activations, the same in every
// lane, and adds products in pairs of 16 bits. A 16-bit sum holds up to 32,767, so that several
// pairs are added before they are widened to lanes of 32 bits; parts have at most 4 bits. Digits of
// activations are as in product_avx512.cc.

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

/// Adds the contribution of the offset 128 of the digits.
void add_digit_offsets(const PackedPart& packed, unsigned digits, std::int64_t* totals) {
  if (digits == 1) return;
  const std::int64_t offset = digits == 2 ? 0x80 : 0x808080;
  const std::uint8_t* sums =
      packed.data + chunks_of(packed.columns, packed.width) * packed.registers * kRegisterBytes;
  for (std::size_t i = 0; i < packed.registers * kRegisterRows; ++i) {
    std::int32_t sum = 0;
    __builtin_memcpy(&sum, sums + i * sizeof(sum), sizeof(sum));
    totals[i] += (offset * sum) << packed.exponent;
  }
}

// ---- Vectors and rows ---------------------------------------------------------------------------

std::size_t digit_bytes(std::size_t columns) { return (columns + 63) / 64 * 64; }

std::size_t vector_bytes(const Weights& weights, unsigned activation_bits) {
  return digit_bytes(weights.columns) * (activation_bits / 8);
}

std::int64_t pack_vector(const Weights& weights, const std::int32_t* x, unsigned activation_bits,
                         std::uint8_t* vector) {
  const std::size_t columns = weights.columns, bytes = digit_bytes(columns);
  for (unsigned shift = 0; shift < activation_bits; shift += 8, vector += bytes) {
    const int sign_flip = shift + 8 == activation_bits ? 0 : 0x80;
    for (std::size_t j = 0; j < columns; ++j) {
      vector[j] = static_cast<std::uint8_t>((x[j] >> shift) ^ sign_flip);
    }
    for (std::size_t j = columns; j < bytes; ++j) vector[j] = 0;
  }
  std::int64_t sum = 0;
  for (std::size_t j = 0; j < columns; ++j) sum += x[j];
  return sum;
}

/// Adds the products of one block, whose parts begin at `data`, and one vector.
void multiply_block(const Weights& weights, const Parts& parts, const std::uint8_t* data,
                    std::size_t registers, const std::uint8_t* vector, unsigned digits,
                    std::int64_t* totals) {
  for (unsigned i = 0; i < parts.count; ++i) {
    const Part& part = parts.parts[i];
    const PackedPart packed = {data, registers, weights.columns, part.width, part.exponent};
    for (unsigned d = 0; d < digits; ++d) {
      multiply_digit(packed, vector + d * digit_bytes(weights.columns), 8 * d + part.exponent,
                     totals);
    }
    add_digit_offsets(packed, digits, totals);
    data += registers * part_bytes(weights.columns, part.width);
  }
}

void multiply(const Weights& weights, const Activations& x, std::size_t first_row, std::size_t rows,
              std::int64_t* y) {
  const Parts parts = parts_of(weights.bits, kMaxWidth);
  std::size_t register_bytes = 0;
  for (unsigned i = 0; i < parts.count; ++i) {
    register_bytes += part_bytes(weights.columns, parts.parts[i].width);
  }
  for (std::size_t i = first_row; i < first_row + rows; i += kBlockRows) {
    const std::size_t left = first_row + rows - i,
                      rows_here = left < kBlockRows ? left : kBlockRows;
    for (std::size_t v = 0; v < x.batch; ++v) {
      std::int64_t totals[kBlockRows];
      for (std::int64_t& total : totals) total = -code_offset(weights.bits) * x.sums[v];
      multiply_block(weights, parts, weights.packed + i / kRegisterRows * register_bytes,
                     registers_of(rows_here), x.vectors + v * x.vector_bytes, x.bits / 8, totals);
      __builtin_memcpy(y + v * weights.rows + i, totals, rows_here * sizeof(*totals));
    }
  }
}

std::size_t packed_bytes(const Planes& planes) {
  return packed_fields_bytes(planes, parts_of(planes.bits, kMaxWidth));
}

void pack(const Planes& planes, std::uint8_t* packed) {
  pack_fields(planes, parts_of(planes.bits, kMaxWidth), packed);
}

}  // namespace

const Kernels kKernels = {packed_bytes, pack, vector_bytes, pack_vector, multiply};

}  // namespace nescio::bitserial::avx2
