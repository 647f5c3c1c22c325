#include "bitserial/matrix.h"

#include <algorithm>
#include <array>
#include <functional>

namespace nescio::bitserial {
namespace {

/// Vectors that are multiplied in one pass over the weights.
constexpr std::size_t kSlice = 16;

/// Bytes of weights that are worth a task of their own.
constexpr std::size_t kTaskBytes = std::size_t{1} << 16;

const Planes& checked(const Planes& planes, std::size_t row_words) {
  check_planes(planes, row_words);
  return planes;
}

}  // namespace

/// The activations of one slice, laid out, and how its rows are shared out.
class BitMatrix::Room {
 public:
  Room(const BitMatrix& matrix, std::size_t batch, unsigned activation_bits)
      : matrix_(matrix),
        bits_(activation_bits),
        line_bytes_(matrix.kernel_->line_bytes(matrix.columns_)),
        vector_bytes_(line_bytes_ * matrix.kernel_->lines(activation_bits)),
        lines_(vector_bytes_ * std::min(batch, kSlice)) {}

  void lay_out(std::size_t v, const std::int32_t* x) {
    matrix_.kernel_->lay_out(x, matrix_.columns_, bits_, lines_.data() + v * vector_bytes_);
    std::int64_t sum = 0;
    for (std::size_t j = 0; j < matrix_.columns_; ++j) sum += x[j];
    sums_[v] = sum;
  }

  /// Multiplies all rows with the first `batch` vectors; `done` is told which rows of y are there.
  template <class Done>
  void multiply(std::size_t batch, std::int64_t* y, ThreadPool& pool, const Done& done) const {
    const Weights weights = {matrix_.rows_, matrix_.columns_, matrix_.bits_, matrix_.packed_.data(),
                             matrix_.code_sums_.data()};
    const Activations x = {bits_, batch, lines_.data(), line_bytes_, sums_.data()};
    const std::size_t rows = matrix_.rows_, share = rows_of_task();
    const auto task = [&](std::size_t number, unsigned) {
      const std::size_t first = number * share, count = std::min(share, rows - first);
      matrix_.kernel_->multiply(weights, x, first, count, y);
      done(first, count);
    };
    pool.run((rows + share - 1) / share, std::ref(task));
  }

 private:
  std::size_t rows_of_task() const {
    const std::size_t row_bytes = matrix_.packed_bytes() / matrix_.rows_ + 1;
    return (kTaskBytes / row_bytes / kRowBlock + 1) * kRowBlock;
  }

  const BitMatrix& matrix_;
  unsigned bits_;
  std::size_t line_bytes_;
  std::size_t vector_bytes_;
  Buffer<std::uint8_t> lines_;
  std::array<std::int64_t, kSlice> sums_;
};

BitMatrix::BitMatrix(const Planes& planes, std::size_t row_words, Tier tier,
                     std::string_view kernel)
    : rows_(checked(planes, row_words).rows),
      columns_(planes.columns),
      bits_(planes.bits),
      tier_(tier),
      kernel_(&choose_kernel(planes, tier, kernel)),
      packed_(kernel_->packed_bytes(planes)),
      code_sums_(bitserial::code_sums(planes)) {
  kernel_->pack(planes, packed_.data());
}

void BitMatrix::multiply(const std::int32_t* x, std::size_t batch, unsigned activation_bits,
                         std::int64_t* y, ThreadPool& pool) const {
  check_activation_bits(activation_bits);
  for (std::size_t v = 0; v < batch; ++v) {
    check_range(x + v * columns_, columns_, activation_bits, v);
  }
  Room room(*this, batch, activation_bits);
  for (std::size_t first = 0; first < batch; first += kSlice) {
    const std::size_t count = std::min(kSlice, batch - first);
    for (std::size_t v = 0; v < count; ++v) room.lay_out(v, x + (first + v) * columns_);
    room.multiply(count, y + first * rows_, pool, [](std::size_t, std::size_t) {});
  }
}

void BitMatrix::apply(const float* x, std::size_t batch, unsigned activation_bits,
                      const float* scale, const float* bias, float* out, ThreadPool& pool) const {
  check_activation_bits(activation_bits);
  const FloatKernels& floats = float_kernels(tier_);
  Room room(*this, batch, activation_bits);
  Buffer<std::int32_t> integers(columns_);
  Buffer<std::int64_t> y(checked_product(rows_, std::min(batch, kSlice)));
  std::array<double, kSlice> steps;
  for (std::size_t first = 0; first < batch; first += kSlice) {
    const std::size_t count = std::min(kSlice, batch - first);
    for (std::size_t v = 0; v < count; ++v) {
      steps[v] = quantize_vector(floats, x + (first + v) * columns_, columns_, activation_bits,
                                 first + v, integers.data());
      room.lay_out(v, integers.data());
    }
    room.multiply(count, y.data(), pool, [&](std::size_t row, std::size_t rows) {
      for (std::size_t v = 0; v < count; ++v) {
        floats.scale(y.data() + v * rows_ + row, rows, scale + row, steps[v],
                     bias == nullptr ? nullptr : bias + row, out + (first + v) * rows_ + row);
      }
    });
  }
}

}  // namespace nescio::bitserial
