#include "probes/bitserial.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/buffer.h"
#include "bitserial/activations.h"
#include "bitserial/planes.h"
#include "bitserial/product.h"

namespace nescio::bitserial {
namespace {

/// More rows do not change the choice of loops (product.cc). Only the rows of one task are
/// multiplied.
constexpr std::size_t kRows = 4 * kTaskRows;
constexpr std::size_t kMinColumns = 256, kEnoughColumns = 4096;
constexpr std::size_t kCached = std::size_t{40} << 10;

/// A product whose operands fit in the first-level cache if possible.
class Slice {
 public:
  Slice(unsigned weight_bits, unsigned activation_bits, std::size_t rows, std::size_t columns,
        std::size_t batch, Tier tier, Method method)
      : kernels_(kernels_of(tier)),
        words_(weight_bits * rows * (columns / 64), 0x9E3779B97F4A7C15),
        planes_{words_.data(), rows, columns, weight_bits},
        packed_(kernels_.packed_bytes(planes_)),
        weights_{rows, columns, weight_bits, method, packed_.data()},
        vector_bytes_(kernels_.vector_bytes(weights_, activation_bits)),
        vectors_(batch * vector_bytes_),
        sums_(batch),
        y_(batch * rows),
        x_{activation_bits, batch, vectors_.data(), vector_bytes_, sums_.data()} {
    kernels_.pack(planes_, packed_.data());
    std::vector<std::int32_t> x(columns);
    for (std::size_t j = 0; j < columns; ++j) x[j] = static_cast<std::int32_t>(j * 151 % 255) - 127;
    for (std::size_t v = 0; v < batch; ++v) {
      sums_[v] = kernels_.pack_vector(weights_, x.data(), activation_bits,
                                      vectors_.data() + v * vector_bytes_);
    }
  }

  /// Bytes that a product of one task reads.
  std::size_t bytes() const {
    return packed_.size() / weights_.rows * task_rows() + vectors_.size();
  }

  double seconds_per_weight() {
    const double weights = static_cast<double>(task_rows() * weights_.columns);
    return best_seconds() / weights;
  }

 private:
  /// Returns the best of many times, which other load on a shared machine affects least.
  double best_seconds() {
    constexpr int kTries = 20, kRuns = 50;
    double best = 1e9;
    for (int attempt = 0; attempt < kTries; ++attempt) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < kRuns; ++i) multiply();
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
      best = std::min(best, taken.count() / kRuns);
    }
    return best;
  }

  std::size_t task_rows() const { return std::min(kTaskRows, weights_.rows); }

  void multiply() { kernels_.multiply(weights_, x_, 0, task_rows(), y_.data()); }

  const Kernels& kernels_;
  std::vector<std::uint64_t> words_;
  Planes planes_;
  Buffer<std::uint8_t> packed_;
  Weights weights_;
  std::size_t vector_bytes_;
  Buffer<std::uint8_t> vectors_;
  std::vector<std::int64_t> sums_, y_;
  Activations x_;
};

}  // namespace

double seconds_per_weight(unsigned weight_bits, unsigned activation_bits, std::size_t rows,
                          std::size_t batch, Tier tier, std::string_view kernel) {
  check_activation_bits(activation_bits);
  check_planes({nullptr, 1, 64, weight_bits}, 1);
  const Method method = parse_method(kernel, tier);
  const std::size_t own = std::clamp<std::size_t>(rows, 1, kRows);
  const std::size_t vectors = std::clamp<std::size_t>(batch, 1, kMaxVectors);
  std::size_t columns = kMinColumns;
  while (columns < kEnoughColumns &&
         Slice(weight_bits, activation_bits, own, 2 * columns, vectors, tier, method).bytes() <=
             kCached) {
    columns *= 2;
  }
  return Slice(weight_bits, activation_bits, own, columns, vectors, tier, method)
      .seconds_per_weight();
}

}  // namespace nescio::bitserial
