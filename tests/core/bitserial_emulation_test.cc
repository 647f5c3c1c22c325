// Bit-serial products on the emulated devices, under the sanitizers: kernels stay within their
// memory at shapes where tiles, chunks and slices end early. The results are compared with the
// specification in tests/bitserial.

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "bitserial/gpu/device_gpu.h"
#include "check.h"
#include "gpu/emulated/device.h"

namespace nescio {
namespace {

using Owner = bitserial::BitSerialDevice<gpu::EmulatedDevice>;
using Matrix = bitserial::DeviceBitMatrix<gpu::EmulatedDevice>;
using Product = bitserial::DeviceBitProduct<gpu::EmulatedDevice>;

std::mt19937_64 rng(20261123);

/// Planes of random weights, and the weights.
struct Weights {
  Weights(std::size_t rows, std::size_t columns, unsigned bits)
      : words(bits * rows * ((columns + 63) / 64)),
        planes{words.data(), rows, columns, bits},
        integers(rows * columns) {
    for (std::size_t i = 0; i < integers.size(); ++i) {
      const auto code = static_cast<unsigned>(rng() % (1u << bits));
      const int sign = bits > 1 && (code >> (bits - 1)) != 0 ? 1 << bits : 0;
      integers[i] = bits == 1 ? 2 * static_cast<int>(code) - 1 : static_cast<int>(code) - sign;
      for (unsigned plane = 0; plane < bits; ++plane) {
        const std::size_t word = (plane * rows + i / columns) * planes.row_words();
        words[word + i % columns / 64] |= std::uint64_t{code >> plane & 1} << (i % columns % 64);
      }
    }
  }

  std::int64_t product(const std::int32_t* x, std::size_t row) const {
    std::int64_t sum = 0;
    for (std::size_t j = 0; j < planes.columns; ++j) {
      sum += std::int64_t{integers[row * planes.columns + j]} * x[j];
    }
    return sum;
  }

  std::vector<std::uint64_t> words;
  bitserial::Planes planes;
  std::vector<int> integers;
};

void test_product(const Owner& device, const Weights& weights, unsigned activation_bits,
                  std::size_t batch, std::string_view kernel) {
  const std::size_t rows = weights.planes.rows, columns = weights.planes.columns;
  const std::vector<float> scale(rows, 1);
  const auto matrix = std::make_shared<Matrix>(device, weights.planes, weights.planes.row_words(),
                                               scale.data(), scale.data());
  Product product(matrix, activation_bits, batch, kernel);
  std::vector<std::int32_t> x(batch * columns);
  std::vector<float> floats(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(rng())) >> (32 - activation_bits);
    floats[i] = static_cast<float>(x[i]);
  }
  std::vector<std::int64_t> y(batch * rows);
  product.multiply(x.data(), y.data());
  for (std::size_t i = 0; i < y.size(); ++i) {
    CHECK(y[i] == weights.product(x.data() + i / rows * columns, i % rows));
  }
  std::vector<float> out(y.size()), queued(y.size());
  product.apply(floats.data(), out.data());
  product.queue(floats.data(), queued.data(), 0);
  CHECK(out == queued);
}

void test_products(unsigned number) {
  const Owner device(number);
  const bool matrix = gpu::EmulatedDevice::info(number).capability >= 80;
  for (const auto& kernel : bitserial::kGpuKernels) {
    if (kernel.matrix && !matrix) continue;
    test_product(device, Weights(1, 1, 1), 8, 1, kernel.name);
    test_product(device, Weights(33, 257, 3), 8, 9, kernel.name);
    test_product(device, Weights(5, 1100, 8), 32, 1, kernel.name);
    test_product(device, Weights(17, 64, 2), 16, 3, kernel.name);
  }
}

}  // namespace
}  // namespace nescio

int main() {
  for (unsigned number = 0; number < nescio::gpu::EmulatedDevice::count(); ++number) {
    nescio::test_products(number);
  }
}
