#pragma once

// Products of weights with a float16 scale for each group of 32, 64 or 128 columns of a row. With the
// exact product y_ig of group g of row i and an activation vector,
//
//   s_0 = 0,   s_{g+1} = s_g + float32(y_ig) scale_ig       in float32, each sum rounded once
//   out_i = float32(s_G (a / q_max)) + bias_i               the product in doubles
//
// A sum is a fused multiply-add, which every tier and GPU has: all return the same bits. The sums of
// 8-bit activations are exact in float32 before they are scaled: 128 x 255 x 128 < 2^24.
//
// Layout of the portable tier: for each row its planes, then its scales. Layout of the others, whose
// lanes are rows (fields.h):
//
//   block       up to 64 rows; within a block, group after group
//   group       part after part, in chunks of 32 / w columns, then the scales of each register
//   code sums   after all blocks: for each block, group and register, the sum of the codes of each
//               row in 16 bits, which activations of more than 8 bits need

#include <cstddef>
#include <cstdint>

#include "base/tier.h"
#include "bitserial/fields.h"
#include "bitserial/planes.h"
#include "bitserial/product.h"

namespace nescio::bitserial {

/// Weights in the layout of a tier.
struct GroupWeights {
  std::size_t rows;
  std::size_t columns;
  unsigned bits;
  std::size_t group;  // columns
  const std::uint8_t* packed;

  std::size_t groups() const { return (columns + group - 1) / group; }
};

/// Contiguous vectors of activations in the layout of a tier.
struct GroupActivations {
  unsigned bits;
  std::size_t batch;
  const std::uint8_t* vectors;
  std::size_t vector_bytes;
  const std::int64_t* sums;  // [vector][group]: the sum of the values of each group
};

/// Throws Error(argument) unless `group` is 32, 64 or 128.
void check_group(std::size_t group);

/// The value of a float16.
float half_value(std::uint16_t half);

struct GroupKernels {
  /// Bytes of packed weights with their scales. `shape` has no `packed`.
  std::size_t (*packed_bytes)(const GroupWeights& shape);
  /// Packs planes, and scales [row][group].
  void (*pack)(const Planes& planes, const std::uint16_t* scales, const GroupWeights& shape,
               std::uint8_t* packed);

  std::size_t (*vector_bytes)(const GroupWeights& weights, unsigned activation_bits);
  void (*pack_vector)(const GroupWeights& weights, const std::int32_t* x, unsigned activation_bits,
                      std::uint8_t* vector);

  /// Sets sums[v * weights.rows + i] to s_G of row i and vector v, for `rows` rows from `first_row`
  /// on, as Kernels::multiply does.
  void (*multiply)(const GroupWeights& weights, const GroupActivations& x, std::size_t first_row,
                   std::size_t rows, float* sums);
};

const GroupKernels& group_kernels_of(Tier tier);

// ---- The layout with lanes ----------------------------------------------------------------------

/// Chunks of a group of a part.
inline constexpr std::size_t group_chunks(std::size_t group, unsigned width) {
  return group * width / 32;
}

/// Bytes of the scales of a group: 16 float16 for each register, in whole cache lines.
inline constexpr std::size_t scale_bytes(std::size_t registers) {
  return (registers * kRegisterRows * sizeof(std::uint16_t) + 63) / 64 * 64;
}

/// Bytes of a group of the rows of `registers` registers.
inline constexpr std::size_t group_bytes(const GroupWeights& weights, std::size_t registers) {
  return registers * kRegisterBytes * (weights.group * weights.bits / 32) + scale_bytes(registers);
}

/// Bytes of one digit of a vector: all columns of the groups, in whole cache lines.
inline constexpr std::size_t digit_bytes(const GroupWeights& weights) {
  return ((weights.columns + weights.group - 1) / weights.group * weights.group + 63) / 64 * 64;
}

namespace lanes {
std::size_t packed_bytes(const GroupWeights& shape);
void pack(const Planes& planes, const std::uint16_t* scales, const GroupWeights& shape,
          unsigned max_width, std::uint8_t* packed);
std::size_t vector_bytes(const GroupWeights& weights, unsigned activation_bits);
void pack_vector(const GroupWeights& weights, const std::int32_t* x, unsigned activation_bits,
                 std::uint8_t* vector);
/// The first code sum of a block.
const std::uint16_t* code_sums(const GroupWeights& weights, std::size_t block);
}  // namespace lanes

NESCIO_TIERS(extern const GroupKernels kGroupKernels;)

}  // namespace nescio::bitserial
