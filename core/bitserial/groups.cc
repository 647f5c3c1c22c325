#include "bitserial/groups.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "base/buffer.h"
#include "base/error.h"

namespace nescio::bitserial {
namespace {

/// Registers of the rows of block number `block`.
std::size_t registers_of_block(const GroupWeights& weights, std::size_t block) {
  return std::min(registers_of(weights.rows) - block * kBlockRegisters, kBlockRegisters);
}

/// Offset of the code sums: the bytes of all blocks.
std::size_t code_sums_offset(const GroupWeights& weights) {
  const std::size_t registers = registers_of(weights.rows);
  const std::size_t blocks = registers / kBlockRegisters, left = registers % kBlockRegisters;
  const std::size_t whole = checked_product(checked_product(blocks, weights.groups()),
                                            group_bytes(weights, kBlockRegisters));
  return whole + (left == 0 ? 0 : weights.groups() * group_bytes(weights, left));
}

}  // namespace

void check_group(std::size_t group) {
  if (group == 32 || group == 64 || group == 128) return;
  throw Error(ErrorKind::argument,
              "group: found " + std::to_string(group) + ", expected 32, 64 or 128");
}

float half_value(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16, exponent = (half >> 10) & 31,
                      mantissa = half & 0x3FFu;
  if (exponent == 0) {
    const float value = std::ldexp(static_cast<float>(mantissa), -24);
    return sign == 0 ? value : -value;
  }
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

const GroupKernels& group_kernels_of(Tier tier) { return NESCIO_PICK(tier, kGroupKernels); }

// ---- The layout with lanes ----------------------------------------------------------------------

namespace lanes {

std::size_t packed_bytes(const GroupWeights& shape) {
  const std::size_t sums = checked_product(registers_of(shape.rows) * kRegisterRows,
                                           shape.groups() * sizeof(std::uint16_t));
  return code_sums_offset(shape) + sums;
}

const std::uint16_t* code_sums(const GroupWeights& weights, std::size_t block) {
  return reinterpret_cast<const std::uint16_t*>(weights.packed + code_sums_offset(weights)) +
         block * kBlockRows * weights.groups();
}

void pack(const Planes& planes, const std::uint16_t* scales, const GroupWeights& shape,
          unsigned max_width, std::uint8_t* packed) {
  std::memset(packed, 0, packed_bytes(shape));
  const Parts parts = parts_of(shape.bits, max_width);
  const std::size_t groups = shape.groups(), sums_offset = code_sums_offset(shape);
  Buffer<std::uint8_t> codes(std::max(64 * planes.row_words(), groups * shape.group));
  std::memset(codes.data(), 0, codes.size());
  for (std::size_t row = 0; row < shape.rows; ++row) {
    read_codes(planes, row, codes.data());
    const std::size_t block = row / kBlockRows, in_block = row % kBlockRows;
    const std::size_t registers = registers_of_block(shape, block);
    std::uint8_t* to = packed + block * groups * group_bytes(shape, kBlockRegisters);
    for (std::size_t g = 0; g < groups; ++g, to += group_bytes(shape, registers)) {
      std::uint8_t* lane =
          to + in_block / kRegisterRows * kRegisterBytes + in_block % kRegisterRows * 4;
      std::int32_t sum = 0;
      for (const Part& part : parts) {
        sum += pack_lane(codes.data() + g * shape.group, shape.group, part,
                         registers * kRegisterBytes, lane)
               << part.exponent;
        lane += group_chunks(shape.group, part.width) * registers * kRegisterBytes;
      }
      std::uint8_t* scale = to + group_bytes(shape, registers) - scale_bytes(registers);
      std::memcpy(scale + in_block * sizeof(*scales), scales + row * groups + g, sizeof(*scales));
      const auto narrow = static_cast<std::uint16_t>(sum);
      const std::size_t at = block * kBlockRows * groups + g * registers * kRegisterRows + in_block;
      std::memcpy(packed + sums_offset + at * sizeof(narrow), &narrow, sizeof(narrow));
    }
  }
}

std::size_t vector_bytes(const GroupWeights& weights, unsigned activation_bits) {
  return digit_bytes(weights) * (activation_bits / 8);
}

void pack_vector(const GroupWeights& weights, const std::int32_t* x, unsigned activation_bits,
                 std::uint8_t* vector) {
  const std::size_t columns = weights.columns, bytes = digit_bytes(weights);
  for (unsigned shift = 0; shift < activation_bits; shift += 8, vector += bytes) {
    const int sign_flip = shift + 8 == activation_bits ? 0 : 0x80;
    for (std::size_t j = 0; j < columns; ++j) {
      vector[j] = static_cast<std::uint8_t>((x[j] >> shift) ^ sign_flip);
    }
    std::memset(vector + columns, 0, bytes - columns);
  }
}

}  // namespace lanes

// ---- Planes, for any processor ------------------------------------------------------------------

namespace portable {
namespace {

std::size_t plane_bytes(const GroupWeights& weights) { return (weights.columns + 63) / 64 * 8; }

/// Bytes of a row: its planes, then its scales, to a multiple of eight.
std::size_t row_bytes(const GroupWeights& weights) {
  const std::size_t scales = (weights.groups() * sizeof(std::uint16_t) + 7) / 8 * 8;
  return plane_bytes(weights) * weights.bits + scales;
}

std::size_t packed_bytes(const GroupWeights& shape) {
  return checked_product(shape.rows, row_bytes(shape));
}

void pack(const Planes& planes, const std::uint16_t* scales, const GroupWeights& shape,
          std::uint8_t* packed) {
  const std::size_t bytes = plane_bytes(shape), groups = shape.groups();
  std::memset(packed, 0, packed_bytes(shape));
  for (std::size_t i = 0; i < shape.rows; ++i, packed += row_bytes(shape)) {
    for (unsigned plane = 0; plane < shape.bits; ++plane) {
      std::memcpy(packed + plane * bytes, planes.row(plane, i), bytes);
    }
    std::memcpy(packed + shape.bits * bytes, scales + i * groups, groups * sizeof(*scales));
  }
}

Weights without_groups(const GroupWeights& weights) {
  return {weights.rows, weights.columns, weights.bits, Method::planes, nullptr};
}

std::size_t vector_bytes(const GroupWeights& weights, unsigned activation_bits) {
  return kKernels.vector_bytes(without_groups(weights), activation_bits);
}

void pack_vector(const GroupWeights& weights, const std::int32_t* x, unsigned activation_bits,
                 std::uint8_t* vector) {
  kKernels.pack_vector(without_groups(weights), x, activation_bits, vector);
}

float multiply_row(const GroupWeights& weights, const std::uint8_t* row, const std::uint8_t* x,
                   const std::int64_t* group_sums, unsigned activation_bits) {
  const std::size_t stride = plane_bytes(weights), bytes = weights.group / 8;
  const std::uint8_t* scales = row + weights.bits * stride;
  float sum = 0;
  for (std::size_t g = 0; g < weights.groups(); ++g) {
    const std::size_t at = g * bytes, count = std::min(bytes, stride - at);
    const std::int64_t product =
        multiply_planes(row + at, x + at, stride, count, weights.bits, activation_bits) -
        (weights.bits == 1 ? group_sums[g] : 0);
    std::uint16_t scale = 0;
    std::memcpy(&scale, scales + g * sizeof(scale), sizeof(scale));
    sum = std::fma(static_cast<float>(product), half_value(scale), sum);
  }
  return sum;
}

void multiply(const GroupWeights& weights, const GroupActivations& x, std::size_t first_row,
              std::size_t rows, float* sums) {
  for (std::size_t i = first_row; i < first_row + rows; ++i) {
    for (std::size_t v = 0; v < x.batch; ++v) {
      sums[v * weights.rows + i] =
          multiply_row(weights, weights.packed + i * row_bytes(weights),
                       x.vectors + v * x.vector_bytes, x.sums + v * weights.groups(), x.bits);
    }
  }
}

}  // namespace

const GroupKernels kGroupKernels = {packed_bytes, pack, vector_bytes, pack_vector, multiply};

}  // namespace portable
}  // namespace nescio::bitserial
