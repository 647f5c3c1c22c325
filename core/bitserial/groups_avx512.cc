// Compiled for AVX-512, VNNI and VBMI. Includes nothing that could leave shared code behind.
#include <immintrin.h>

#include "bitserial/groups.h"
#include "bitserial/lanes_avx512_impl.h"

// As in product_avx512.cc, fields are used in place. At the end of a group its sums are scaled and
// added to those of the rows, 16 rows to a register.

namespace nescio::bitserial::avx512 {
namespace {

constexpr unsigned kMaxWidth = 8;

/// A block of rows, and the groups of it that are multiplied.
struct Block {
  const std::uint8_t* data;  // of the first group
  const std::uint16_t* code_sums;
  std::size_t registers;
  std::size_t first, last;  // groups
};

/// Adds the products of one part of a group of `rows` registers and `digits` digit vectors; returns
/// the bytes after it.
template <unsigned width, int digits, int rows>
inline const std::uint8_t* add_part(const std::uint8_t* data, std::size_t step, std::size_t group,
                                    const std::int8_t* const* digit, std::size_t column,
                                    unsigned exponent, __m512i (&sums)[rows][digits]) {
  const std::size_t chunks = group_chunks(group, width);
  __m512i own[rows][digits][8 / width];
  multiply_fields<8 / width, digits, rows>(data, step, chunks, digit, column, own);
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < digits; ++i) {
      sums[r][i] = _mm512_add_epi32(sums[r][i], _mm512_slli_epi32(joined(own[r][i]), exponent));
    }
  }
  return data + chunks * step;
}

/// Sets `sums` to the products of the codes of a group.
template <unsigned bits, int digits, int rows>
inline void add_group(const std::uint8_t* data, std::size_t step, std::size_t group,
                      const std::int8_t* const* digit, std::size_t column,
                      __m512i (&sums)[rows][digits]) {
  for (auto& row : sums) {
    for (__m512i& sum : row) sum = _mm512_setzero_si512();
  }
  if constexpr ((bits & 8) != 0) {
    data = add_part<8, digits, rows>(data, step, group, digit, column, 0, sums);
  }
  if constexpr ((bits & 4) != 0) {
    data = add_part<4, digits, rows>(data, step, group, digit, column, bits & 3, sums);
  }
  if constexpr ((bits & 2) != 0) {
    data = add_part<2, digits, rows>(data, step, group, digit, column, bits & 1, sums);
  }
  if constexpr ((bits & 1) != 0) {
    add_part<1, digits, rows>(data, step, group, digit, column, bits == 1 ? 1 : 0, sums);
  }
}

inline __m512 scales_of(const std::uint8_t* scales, std::size_t r) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(scales + r * 32)));
}

/// Activations of 8 bits: multiplies `rows` registers from `from` on by `vectors` vectors.
template <unsigned bits, int vectors, int rows>
void multiply_rows(const GroupWeights& weights, const Block& block, std::size_t from,
                   const std::int8_t* const* vector, const std::int64_t* const* group_sums,
                   float* const* totals) {
  const std::size_t bytes = group_bytes(weights, block.registers);
  const std::size_t step = block.registers * kRegisterBytes;
  const std::size_t scales = bytes - scale_bytes(block.registers);
  __m512 sums[rows][vectors];
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) {
      sums[r][v] = _mm512_loadu_ps(totals[v] + (from + r) * kRegisterRows);
    }
  }
  const std::uint8_t* data = block.data;
  for (std::size_t g = block.first; g < block.last; ++g, data += bytes) {
    __m512i products[rows][vectors];
    add_group<bits, vectors, rows>(data + from * kRegisterBytes, step, weights.group, vector,
                                   g * weights.group, products);
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      const __m512 scale = scales_of(data + scales, from + r);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        const auto offset = static_cast<int>(code_offset(bits) * group_sums[v][g]);
        const __m512i exact = _mm512_sub_epi32(products[r][v], _mm512_set1_epi32(offset));
        sums[r][v] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact), scale, sums[r][v]);
      }
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) {
      _mm512_storeu_ps(totals[v] + (from + r) * kRegisterRows, sums[r][v]);
    }
  }
}

/// Eight exact products, of codes and digits, as floats.
template <int digits>
inline __m256 wide_products(const __m256i (&sums)[digits], __m256i codes, std::int64_t offset) {
  constexpr std::int64_t digit_offset = digits == 2 ? 0x80 : 0x808080;
  __m512i total = _mm512_mullo_epi64(_mm512_cvtepu32_epi64(codes), _mm512_set1_epi64(digit_offset));
#pragma GCC unroll 4
  for (unsigned d = 0; d < digits; ++d) {
    total = _mm512_add_epi64(total, _mm512_slli_epi64(_mm512_cvtepi32_epi64(sums[d]), 8 * d));
  }
  return _mm512_cvtepi64_ps(_mm512_sub_epi64(total, _mm512_set1_epi64(offset)));
}

/// Activations of 16 or 32 bits: multiplies one register by the digits of one vector.
template <unsigned bits, int digits>
void multiply_wide(const GroupWeights& weights, const Block& block, std::size_t from,
                   const std::int8_t* const* digit, const std::int64_t* group_sums, float* total) {
  const std::size_t bytes = group_bytes(weights, block.registers);
  const std::size_t scales = bytes - scale_bytes(block.registers);
  const std::uint16_t* code_sums = block.code_sums + from * kRegisterRows;
  __m512 sum = _mm512_loadu_ps(total + from * kRegisterRows);
  const std::uint8_t* data = block.data;
  for (std::size_t g = block.first; g < block.last; ++g, data += bytes) {
    __m512i products[1][digits];
    add_group<bits, digits, 1>(data + from * kRegisterBytes, block.registers * kRegisterBytes,
                               weights.group, digit, g * weights.group, products);
    const __m512i codes = _mm512_cvtepu16_epi32(_mm256_loadu_si256(
        reinterpret_cast<const __m256i*>(code_sums + g * block.registers * kRegisterRows)));
    const std::int64_t offset = code_offset(bits) * group_sums[g];
    __m256i low[digits], high[digits];
    for (int d = 0; d < digits; ++d) {
      low[d] = _mm512_castsi512_si256(products[0][d]);
      high[d] = _mm512_extracti64x4_epi64(products[0][d], 1);
    }
    const __m256 first = wide_products(low, _mm512_castsi512_si256(codes), offset);
    const __m256 second = wide_products(high, _mm512_extracti64x4_epi64(codes, 1), offset);
    const __m512 exact = _mm512_insertf32x8(_mm512_castps256_ps512(first), second, 1);
    sum = _mm512_fmadd_ps(exact, scales_of(data + scales, from), sum);
  }
  _mm512_storeu_ps(total + from * kRegisterRows, sum);
}

/// Registers of weights whose sums fit in the 32 vector registers.
template <unsigned bits, int vectors>
constexpr int rows_at_once() {
  constexpr int fields = (bits & 1) != 0 ? 8 : (bits & 2) != 0 ? 4 : (bits & 4) != 0 ? 2 : 1;
  return fields * vectors >= 16 ? 1 : fields * vectors >= 8 ? 2 : 4;
}

template <unsigned bits, int vectors>
void multiply_vectors(const GroupWeights& weights, const Block& block,
                      const std::int8_t* const* vector, const std::int64_t* const* group_sums,
                      float* const* totals) {
  constexpr int rows = rows_at_once<bits, vectors>();
  std::size_t r = 0;
  for (; r + rows <= block.registers; r += rows) {
    multiply_rows<bits, vectors, rows>(weights, block, r, vector, group_sums, totals);
  }
  for (; r < block.registers; ++r) {
    multiply_rows<bits, vectors, 1>(weights, block, r, vector, group_sums, totals);
  }
}

using FloatTotals = float[kMaxVectors][kBlockRows];

template <unsigned bits>
void multiply_digits(const GroupWeights& weights, const GroupActivations& x, const Block& block,
                     FloatTotals& totals) {
  const std::size_t bytes = digit_bytes(weights);
  for (std::size_t v = 0; v < x.batch; ++v) {
    const auto* vector = reinterpret_cast<const std::int8_t*>(x.vectors + v * x.vector_bytes);
    const std::int8_t* digit[] = {vector, vector + bytes, vector + 2 * bytes, vector + 3 * bytes};
    const std::int64_t* group_sums = x.sums + v * weights.groups();
    for (std::size_t r = 0; r < block.registers; ++r) {
      if (x.bits == 16) {
        multiply_wide<bits, 2>(weights, block, r, digit, group_sums, totals[v]);
      } else {
        multiply_wide<bits, 4>(weights, block, r, digit, group_sums, totals[v]);
      }
    }
  }
}

template <unsigned bits>
void multiply_all(const GroupWeights& weights, const GroupActivations& x, const Block& block,
                  FloatTotals& totals) {
  if (x.bits > 8) return multiply_digits<bits>(weights, x, block, totals);
  const std::int8_t* vector[kMaxVectors];
  const std::int64_t* group_sums[kMaxVectors];
  float* sums[kMaxVectors];
  for (std::size_t v = 0; v < x.batch; ++v) {
    vector[v] = reinterpret_cast<const std::int8_t*>(x.vectors + v * x.vector_bytes);
    group_sums[v] = x.sums + v * weights.groups();
    sums[v] = totals[v];
  }
  std::size_t v = 0;
  for (; v + 4 <= x.batch; v += 4) {
    multiply_vectors<bits, 4>(weights, block, vector + v, group_sums + v, sums + v);
  }
  for (; v < x.batch; ++v) {
    multiply_vectors<bits, 1>(weights, block, vector + v, group_sums + v, sums + v);
  }
}

using Multiply = void (*)(const GroupWeights&, const GroupActivations&, const Block&, FloatTotals&);
constexpr Multiply kMultiply[] = {multiply_all<1>, multiply_all<2>, multiply_all<3>,
                                  multiply_all<4>, multiply_all<5>, multiply_all<6>,
                                  multiply_all<7>, multiply_all<8>};

/// Multiplies one block, whose groups begin at `data`. Weights that several vectors read are read in
/// slices of 64 KB, which stay in the cache.
void multiply_block(const GroupWeights& weights, const GroupActivations& x, std::size_t number,
                    std::size_t rows, float* y) {
  alignas(64) FloatTotals totals = {};
  const std::size_t registers = registers_of(rows), bytes = group_bytes(weights, registers);
  const std::uint8_t* data =
      weights.packed + number * weights.groups() * group_bytes(weights, kBlockRegisters);
  const std::uint16_t* code_sums = lanes::code_sums(weights, number);
  const std::size_t slice = x.batch == 1 ? weights.groups() : (std::size_t{1} << 16) / bytes + 1;
  for (std::size_t first = 0; first < weights.groups(); first += slice) {
    const std::size_t last = weights.groups() - first < slice ? weights.groups() : first + slice;
    kMultiply[weights.bits - 1](weights, x,
                                {data + first * bytes, code_sums, registers, first, last}, totals);
  }
  for (std::size_t v = 0; v < x.batch; ++v) {
    __builtin_memcpy(y + v * weights.rows, totals[v], rows * sizeof(*y));
  }
}

void multiply(const GroupWeights& weights, const GroupActivations& x, std::size_t first_row,
              std::size_t rows, float* sums) {
  for (std::size_t i = first_row; i < first_row + rows; i += kBlockRows) {
    const std::size_t left = first_row + rows - i;
    multiply_block(weights, x, i / kBlockRows, left < kBlockRows ? left : kBlockRows, sums + i);
  }
}

void pack(const Planes& planes, const std::uint16_t* scales, const GroupWeights& shape,
          std::uint8_t* packed) {
  lanes::pack(planes, scales, shape, kMaxWidth, packed);
}

}  // namespace

const GroupKernels kGroupKernels = {lanes::packed_bytes, pack, lanes::vector_bytes,
                                    lanes::pack_vector, multiply};

}  // namespace nescio::bitserial::avx512
