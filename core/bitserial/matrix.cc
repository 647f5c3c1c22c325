#include "bitserial/matrix.h"

#include <algorithm>
#include <array>
#include <functional>

namespace nescio::bitserial {
namespace {

const Planes& checked(const Planes& planes, std::size_t row_words) {
  check_planes(planes, row_words);
  return planes;
}

}  // namespace

/// The packed activations of up to kMaxVectors vectors, and the division of rows into tasks.
class BitMatrix::Workspace {
 public:
  Workspace(const BitMatrix& matrix, std::size_t batch, unsigned activation_bits)
      : kernels_(*matrix.kernels_),
        weights_(matrix.weights()),
        packed_bytes_(matrix.packed_bytes()),
        bits_(activation_bits),
        vector_bytes_(kernels_.vector_bytes(weights_, activation_bits)),
        vectors_(vector_bytes_ * std::min(batch, kMaxVectors)) {}

  void pack_vector(std::size_t v, const std::int32_t* x) {
    sums_[v] = kernels_.pack_vector(weights_, x, bits_, vectors_.data() + v * vector_bytes_);
  }

  /// Multiplies all rows by the first `batch` vectors. Calls done(first, count) when rows first to
  /// first + count - 1 of y are written.
  template <class Done>
  void multiply(std::size_t batch, std::int64_t* y, ThreadPool& pool, const Done& done) const {
    const Activations x = {bits_, batch, vectors_.data(), vector_bytes_, sums_.data()};
    const std::size_t rows = weights_.rows, rows_of_task = rows_per_task(packed_bytes_, rows);
    const auto task = [&](std::size_t number, unsigned) {
      const std::size_t first = number * rows_of_task, count = std::min(rows_of_task, rows - first);
      kernels_.multiply(weights_, x, first, count, y);
      done(first, count);
    };
    pool.run((rows + rows_of_task - 1) / rows_of_task, std::ref(task));
  }

 private:
  const Kernels& kernels_;
  Weights weights_;
  std::size_t packed_bytes_;
  unsigned bits_;
  std::size_t vector_bytes_;
  Buffer<std::uint8_t> vectors_;
  std::array<std::int64_t, kMaxVectors> sums_;
};

BitMatrix::BitMatrix(const Planes& planes, std::size_t row_words, Tier tier,
                     std::string_view kernel)
    : rows_(checked(planes, row_words).rows),
      columns_(planes.columns),
      bits_(planes.bits),
      tier_(tier),
      method_(parse_method(kernel, tier)),
      kernels_(&kernels_of(tier)),
      packed_(kernels_->packed_bytes(planes)) {
  kernels_->pack(planes, packed_.data());
}

std::string BitMatrix::kernel(unsigned activation_bits) const {
  check_activation_bits(activation_bits);
  return methods_used(weights(), tier_, activation_bits);
}

void BitMatrix::multiply(const std::int32_t* x, std::size_t batch, unsigned activation_bits,
                         std::int64_t* y, ThreadPool& pool) const {
  check_activation_bits(activation_bits);
  for (std::size_t v = 0; v < batch; ++v) {
    check_range(x + v * columns_, columns_, activation_bits, v);
  }
  Workspace workspace(*this, batch, activation_bits);
  for (std::size_t first = 0; first < batch; first += kMaxVectors) {
    const std::size_t count = std::min(kMaxVectors, batch - first);
    for (std::size_t v = 0; v < count; ++v) workspace.pack_vector(v, x + (first + v) * columns_);
    workspace.multiply(count, y + first * rows_, pool, [](std::size_t, std::size_t) {});
  }
}

void BitMatrix::apply(const float* x, std::size_t batch, unsigned activation_bits,
                      const float* scale, const float* bias, float* out, ThreadPool& pool) const {
  check_activation_bits(activation_bits);
  const FloatKernels& floats = float_kernels(tier_);
  Workspace workspace(*this, batch, activation_bits);
  Buffer<std::int32_t> integers(columns_);
  Buffer<std::int64_t> y(checked_product(rows_, std::min(batch, kMaxVectors)));
  std::array<double, kMaxVectors> steps;
  for (std::size_t first = 0; first < batch; first += kMaxVectors) {
    const std::size_t count = std::min(kMaxVectors, batch - first);
    for (std::size_t v = 0; v < count; ++v) {
      steps[v] = quantize_vector(floats, x + (first + v) * columns_, columns_, activation_bits,
                                 first + v, integers.data());
      workspace.pack_vector(v, integers.data());
    }
    workspace.multiply(count, y.data(), pool, [&](std::size_t row, std::size_t rows) {
      for (std::size_t v = 0; v < count; ++v) {
        floats.scale(y.data() + v * rows_ + row, rows, scale + row, steps[v],
                     bias == nullptr ? nullptr : bias + row, out + (first + v) * rows_ + row);
      }
    });
  }
}

}  // namespace nescio::bitserial
