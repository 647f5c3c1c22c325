#pragma once

// A matrix of weights of 1 to 8 bits in the layout of one CPU tier, and its products. Immutable,
// and therefore safe to use from several threads.

#include <string>
#include <string_view>

#include "base/buffer.h"
#include "base/cpu.h"
#include "base/thread_pool.h"
#include "bitserial/activations.h"
#include "bitserial/product.h"

namespace nescio::bitserial {

class BitMatrix {
 public:
  /// Copies the planes, of `row_words` words per row, into the tier's layout. `kernel` is a method
  /// of the tier, or empty for the fastest methods. Throws Error(argument) as check_planes and
  /// parse_method do.
  BitMatrix(const Planes& planes, std::size_t row_words, Tier tier, std::string_view kernel);

  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return columns_; }
  unsigned bits() const { return bits_; }
  Tier tier() const { return tier_; }
  /// The names of the methods that a product uses, joined by "+".
  std::string kernel(unsigned activation_bits) const;
  std::size_t packed_bytes() const { return packed_.size(); }

  /// Computes y = q x for each vector of a batch. Vectors and products are contiguous. Throws
  /// Error(argument) for a value that does not fit in `activation_bits` bits.
  void multiply(const std::int32_t* x, std::size_t batch, unsigned activation_bits, std::int64_t* y,
                ThreadPool& pool) const;

  /// Quantizes vectors, multiplies and scales the products (activations.h). `bias` may be null.
  /// Throws Error(argument) if an activation is NaN or infinite.
  void apply(const float* x, std::size_t batch, unsigned activation_bits, const float* scale,
             const float* bias, float* out, ThreadPool& pool) const;

 private:
  class Workspace;

  Weights weights() const { return {rows_, columns_, bits_, method_, packed_.data()}; }

  std::size_t rows_;
  std::size_t columns_;
  unsigned bits_;
  Tier tier_;
  Method method_;
  const Kernels* kernels_;
  Buffer<std::uint8_t> packed_;
};

}  // namespace nescio::bitserial
