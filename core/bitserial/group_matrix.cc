#include "bitserial/group_matrix.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <string>

#include "base/error.h"

namespace nescio::bitserial {
namespace {

GroupWeights checked(const Planes& planes, std::size_t row_words, const std::uint16_t* scales,
                     std::size_t group) {
  check_planes(planes, row_words);
  check_group(group);
  const GroupWeights shape = {planes.rows, planes.columns, planes.bits, group, nullptr};
  for (std::size_t i = 0; i < planes.rows * shape.groups(); ++i) {
    if ((scales[i] & 0x7C00) != 0x7C00) continue;
    throw Error(ErrorKind::argument,
                "scale: found NaN or infinity for row " + std::to_string(i / shape.groups()) +
                    ", group " + std::to_string(i % shape.groups()) + ", expected finite numbers");
  }
  return shape;
}

}  // namespace

/// The packed activations of up to kMaxVectors vectors, and their products.
class GroupMatrix::Workspace {
 public:
  Workspace(const GroupMatrix& matrix, std::size_t batch, unsigned activation_bits)
      : kernels_(*matrix.kernels_),
        floats_(float_kernels(matrix.tier())),
        weights_(matrix.weights()),
        packed_bytes_(matrix.packed_bytes()),
        bits_(activation_bits),
        vector_bytes_(kernels_.vector_bytes(weights_, activation_bits)),
        integers_(weights_.columns),
        vectors_(vector_bytes_ * batch),
        group_sums_(weights_.groups() * batch),
        sums_(checked_product(weights_.rows, batch)) {}

  /// Quantizes the vector with this number in the whole batch.
  void set_vector(std::size_t v, const float* x, std::size_t number) {
    const std::size_t columns = weights_.columns, group = weights_.group;
    steps_[v] = quantize_vector(floats_, x, columns, bits_, number, integers_.data());
    kernels_.pack_vector(weights_, integers_.data(), bits_, vectors_.data() + v * vector_bytes_);
    std::int64_t* sums = group_sums_.data() + v * weights_.groups();
    for (std::size_t first = 0; first < columns; first += group) {
      const std::int32_t* from = integers_.data() + first;
      *sums++ = std::accumulate(from, from + std::min(group, columns - first), std::int64_t{0});
    }
  }

  /// Multiplies all rows by the first `batch` vectors, and writes scaled products.
  void multiply(std::size_t batch, const float* bias, float* out, ThreadPool& pool) {
    const GroupActivations x = {bits_, batch, vectors_.data(), vector_bytes_, group_sums_.data()};
    const std::size_t rows = weights_.rows, rows_of_task = rows_per_task(packed_bytes_, rows);
    const auto task = [&](std::size_t number, unsigned) {
      const std::size_t first = number * rows_of_task;
      const std::size_t count = std::min(rows_of_task, rows - first);
      kernels_.multiply(weights_, x, first, count, sums_.data());
      for (std::size_t v = 0; v < batch; ++v) scale(v, first, count, bias, out + v * rows);
    };
    pool.run((rows + rows_of_task - 1) / rows_of_task, std::ref(task));
  }

 private:
  void scale(std::size_t v, std::size_t first, std::size_t count, const float* bias,
             float* out) const {
    const float* sums = sums_.data() + v * weights_.rows;
    for (std::size_t i = first; i < first + count; ++i) {
      out[i] = static_cast<float>(double{sums[i]} * steps_[v]);
      if (bias != nullptr) out[i] += bias[i];
    }
  }

  const GroupKernels& kernels_;
  const FloatKernels& floats_;
  GroupWeights weights_;
  std::size_t packed_bytes_;
  unsigned bits_;
  std::size_t vector_bytes_;
  Buffer<std::int32_t> integers_;
  Buffer<std::uint8_t> vectors_;
  Buffer<std::int64_t> group_sums_;
  Buffer<float> sums_;
  std::array<double, kMaxVectors> steps_;
};

GroupMatrix::GroupMatrix(const Planes& planes, std::size_t row_words, const std::uint16_t* scales,
                         std::size_t group, Tier tier)
    : shape_(checked(planes, row_words, scales, group)),
      tier_(tier),
      kernels_(&group_kernels_of(tier)),
      packed_(kernels_->packed_bytes(shape_)) {
  kernels_->pack(planes, scales, shape_, packed_.data());
}

GroupWeights GroupMatrix::weights() const {
  GroupWeights weights = shape_;
  weights.packed = packed_.data();
  return weights;
}

void GroupMatrix::apply(const float* x, std::size_t batch, unsigned activation_bits,
                        const float* bias, float* out, ThreadPool& pool) const {
  check_activation_bits(activation_bits);
  Workspace workspace(*this, std::min(batch, kMaxVectors), activation_bits);
  for (std::size_t first = 0; first < batch; first += kMaxVectors) {
    const std::size_t count = std::min(kMaxVectors, batch - first);
    for (std::size_t v = 0; v < count; ++v) {
      workspace.set_vector(v, x + (first + v) * columns(), first + v);
    }
    workspace.multiply(count, bias, out + first * rows(), pool);
  }
}

}  // namespace nescio::bitserial
