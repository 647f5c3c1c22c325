#pragma once

// The product of weights with a scale for each group of columns (groups.h) and activations on a GPU.
//
// A warp computes a row. Each lane counts the ones of one group's planes, as in product_gpu.h, and
// the exact product of the group. The scaled products of 32 groups are then added in their order, so
// that the sum has the same bits as on the CPU.

#include <cstddef>
#include <cstdint>

#include "bitserial/gpu/activations_gpu.h"

namespace nescio::bitserial {

/// Weights in device memory: planes in the layout of planes.h, in words of 32 columns.
struct GroupPlanes {
  const std::uint32_t* words;
  const float* scale;  ///< [row][group]
  std::uint32_t rows;
  std::uint32_t columns;
  std::uint32_t bits;
  std::uint32_t group;  ///< columns

  NESCIO_INLINE std::uint32_t row_words() const {
    return 2 * static_cast<std::uint32_t>(ceil_div(columns, 64));
  }
  NESCIO_INLINE std::uint32_t groups() const {
    return static_cast<std::uint32_t>(ceil_div(columns, group));
  }
};

/// The product of weights and vectors that WriteVectors has packed, each in a slice of its own.
struct GroupProduct {
  static constexpr unsigned kWarps = 8;
  static constexpr unsigned kThreads = kWarps * gpu::kWarp;
  static constexpr bool kCooperative = true;

  GroupPlanes weights;
  VectorTiles vectors;
  const Pair* tiles;
  const double* steps;
  const float* bias;  ///< null for none
  float* to;

  /// Shared memory: a product and a scale of each thread.
  std::size_t shared_bytes() const { return 2 * kThreads * sizeof(float); }
  gpu::Grid grid() const {
    return {static_cast<std::uint32_t>(ceil_div(weights.rows, kWarps)), vectors.batch};
  }

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const std::uint32_t row = block.x() * kWarps + block.warp(), groups = weights.groups();
    auto* products = reinterpret_cast<float*>(block.shared());
    float* scales = products + kThreads;
    float sum = 0;
    for (std::uint32_t first = 0; first < groups; first += gpu::kWarp) {
      const std::uint32_t g = first + block.lane();
      const bool there = row < weights.rows && g < groups;
      products[block.thread()] = there ? product(block, row, g) : 0;
      scales[block.thread()] = there ? weights.scale[std::uint64_t{row} * groups + g] : 0;
      block.sync();
      if (block.lane() == 0) {
        for (unsigned i = 0; i < gpu::kWarp; ++i) {
          const unsigned from = block.thread() + i;
          sum = B::multiply_add(products[from], scales[from], sum);
        }
      }
      block.sync();
    }
    if (block.lane() == 0 && row < weights.rows) write(block.y(), row, sum);
  }

 private:
  template <gpu::ThreadBlock B>
  NESCIO_DEVICE float product(const B& block, std::uint32_t row, std::uint32_t g) const {
    const auto* planes =
        reinterpret_cast<const std::uint32_t*>(tiles + block.y() * vectors.slice_pairs());
    if (vectors.bits == 8) return static_cast<float>(exact<8, std::int32_t, B>(planes, row, g));
    if (vectors.bits == 16) return static_cast<float>(exact<16, std::int64_t, B>(planes, row, g));
    return static_cast<float>(exact<32, std::int64_t, B>(planes, row, g));
  }

  /// The exact product of a group, in integers that hold it.
  template <unsigned kBits, class Integer, class B>
  NESCIO_DEVICE Integer exact(const std::uint32_t* planes, std::uint32_t row,
                              std::uint32_t g) const {
    const std::uint32_t words = weights.group / 32, row_words = weights.row_words();
    Integer total = 0;
    for (std::uint32_t word = g * words; word < (g + 1) * words && word < row_words; ++word) {
      std::uint32_t x[kBits];
      NESCIO_UNROLL
      for (unsigned j = 0; j < kBits; ++j) x[j] = planes[vectors.word_index(0, j, word)];
      for (std::uint32_t plane = 0; plane < weights.bits; ++plane) {
        const std::uint64_t at = (std::uint64_t{plane} * weights.rows + row) * row_words + word;
        const Integer ones = counted<kBits, Integer, B>(x, weights.words[at]);
        const Integer weight = weights.bits == 1 ? 2 : Integer{1} << plane;
        total += plane + 1 == weights.bits && plane > 0 ? -weight * ones : weight * ones;
      }
      if (weights.bits == 1) total -= counted<kBits, Integer, B>(x, ~std::uint32_t{0});
    }
    return total;
  }

  /// The sum of the activations at the ones of a word.
  template <unsigned kBits, class Integer, class B>
  NESCIO_DEVICE static Integer counted(const std::uint32_t (&x)[kBits], std::uint32_t word) {
    Integer sum = 0;
    NESCIO_UNROLL
    for (unsigned j = 0; j < kBits; ++j) {
      const auto ones = static_cast<Integer>(B::count_ones(x[j] & word));
      sum += (j + 1 == kBits ? -ones : ones) * (Integer{1} << j);
    }
    return sum;
  }

  NESCIO_DEVICE void write(std::uint32_t vector, std::uint32_t row, float sum) const {
    const float value = static_cast<float>(static_cast<double>(sum) * steps[vector]);
    to[std::uint64_t{vector} * weights.rows + row] = bias == nullptr ? value : value + bias[row];
  }
};

}  // namespace nescio::bitserial
