// Compiled for AVX2, FMA and F16C. Includes nothing that could leave shared code behind.
#include <immintrin.h>

#include "bitserial/groups.h"
#include "bitserial/lanes_avx2_impl.h"

namespace nescio::bitserial::avx2 {
namespace {

/// Adds the exact products of a group of one block and one vector, whose parts begin at `data`.
void add_group(const GroupWeights& weights, const Parts& parts, std::size_t registers,
               const std::uint8_t* data, const std::uint8_t* vector, unsigned digits,
               std::int64_t* totals) {
  for (unsigned i = 0; i < parts.count; ++i) {
    const Part& part = parts.parts[i];
    const PackedPart packed = {data, registers, weights.group, part.width, part.exponent};
    for (unsigned d = 0; d < digits; ++d) {
      multiply_digit(packed, vector + d * digit_bytes(weights), 8 * d + part.exponent, totals);
    }
    data += group_chunks(weights.group, part.width) * registers * kRegisterBytes;
  }
}

/// sums += scale * float(product), for eight rows.
inline void add_scaled(const std::int64_t* products, const std::uint8_t* scales, bool narrow,
                       float* sums) {
  __m256 values;
  if (narrow) {  // products of 8-bit activations have less than 32 bits
    alignas(32) std::int32_t low[8];
    for (int i = 0; i < 8; ++i) low[i] = static_cast<std::int32_t>(products[i]);
    values = _mm256_cvtepi32_ps(load(low));
  } else {
    alignas(32) float rounded[8];
    for (int i = 0; i < 8; ++i) rounded[i] = static_cast<float>(products[i]);
    values = _mm256_load_ps(rounded);
  }
  const __m256 scale = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(scales)));
  _mm256_storeu_ps(sums, _mm256_fmadd_ps(values, scale, _mm256_loadu_ps(sums)));
}

/// The sums of one block and one vector.
void multiply_block(const GroupWeights& weights, const Parts& parts, std::size_t number,
                    std::size_t registers, const GroupActivations& x, std::size_t v, float* sums) {
  const std::size_t bytes = group_bytes(weights, registers), rows = registers * kRegisterRows;
  const std::uint8_t* data =
      weights.packed + number * weights.groups() * group_bytes(weights, kBlockRegisters);
  const std::uint16_t* codes = lanes::code_sums(weights, number);
  const std::int64_t digit_offset = x.bits == 8 ? 0 : x.bits == 16 ? 0x80 : 0x808080;
  for (std::size_t g = 0; g < weights.groups(); ++g, data += bytes, codes += rows) {
    const std::int64_t offset = code_offset(weights.bits) * x.sums[v * weights.groups() + g];
    std::int64_t totals[kBlockRows];
    for (std::size_t i = 0; i < rows; ++i) totals[i] = digit_offset * codes[i] - offset;
    add_group(weights, parts, registers, data, x.vectors + v * x.vector_bytes + g * weights.group,
              x.bits / 8, totals);
    const std::uint8_t* scales = data + bytes - scale_bytes(registers);
    for (std::size_t i = 0; i < rows; i += 8) {
      add_scaled(totals + i, scales + i * sizeof(std::uint16_t), x.bits == 8, sums + i);
    }
  }
}

void multiply(const GroupWeights& weights, const GroupActivations& x, std::size_t first_row,
              std::size_t rows, float* sums) {
  const Parts parts = parts_of(weights.bits, kMaxWidth);
  for (std::size_t i = first_row; i < first_row + rows; i += kBlockRows) {
    const std::size_t left = first_row + rows - i,
                      rows_here = left < kBlockRows ? left : kBlockRows;
    for (std::size_t v = 0; v < x.batch; ++v) {
      float own[kBlockRows] = {};
      multiply_block(weights, parts, i / kBlockRows, registers_of(rows_here), x, v, own);
      __builtin_memcpy(sums + v * weights.rows + i, own, rows_here * sizeof(*own));
    }
  }
}

void pack(const Planes& planes, const std::uint16_t* scales, const GroupWeights& shape,
          std::uint8_t* packed) {
  lanes::pack(planes, scales, shape, kMaxWidth, packed);
}

}  // namespace

const GroupKernels kGroupKernels = {lanes::packed_bytes, pack, lanes::vector_bytes,
                                    lanes::pack_vector, multiply};

}  // namespace nescio::bitserial::avx2
