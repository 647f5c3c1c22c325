// Compiled for AVX2. Includes nothing that could leave shared code behind.
#include <immintrin.h>

#include "bitserial/lanes_avx2_impl.h"

// Digits of activations are as in product_avx512.cc.

namespace nescio::bitserial::avx2 {
namespace {

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
