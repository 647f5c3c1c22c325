#pragma once

// A matrix of weights of 1 to 8 bits with a float16 scale for each group of columns of a row, in the
// layout of one CPU tier (groups.h). Immutable, and therefore safe to use from several threads.

#include <cstdint>

#include "base/buffer.h"
#include "base/cpu.h"
#include "base/thread_pool.h"
#include "bitserial/activations.h"
#include "bitserial/groups.h"

namespace nescio::bitserial {

class GroupMatrix {
 public:
  /// Copies planes, of `row_words` words per row, and scales [row][group] into the tier's layout.
  /// Throws Error(argument) as check_planes and check_group do, and for a scale that is not finite.
  GroupMatrix(const Planes& planes, std::size_t row_words, const std::uint16_t* scales,
              std::size_t group, Tier tier);

  std::size_t rows() const { return shape_.rows; }
  std::size_t columns() const { return shape_.columns; }
  std::size_t group() const { return shape_.group; }
  unsigned bits() const { return shape_.bits; }
  Tier tier() const { return tier_; }
  std::size_t packed_bytes() const { return packed_.size(); }

  /// Quantizes vectors, multiplies and scales (groups.h). `bias` may be null. Throws Error(argument)
  /// if an activation is NaN or infinite.
  void apply(const float* x, std::size_t batch, unsigned activation_bits, const float* bias,
             float* out, ThreadPool& pool) const;

 private:
  class Workspace;

  GroupWeights weights() const;

  GroupWeights shape_;  // without `packed`
  Tier tier_;
  const GroupKernels* kernels_;
  Buffer<std::uint8_t> packed_;
};

}  // namespace nescio::bitserial
