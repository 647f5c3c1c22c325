#include "bitserial/activations.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "base/error.h"

namespace nescio::bitserial {
namespace {

constexpr std::uint32_t kMagnitude = 0x7FFFFFFF, kMaxFinite = 0x7F7FFFFF;

[[noreturn]] void refuse(const std::string& found, std::size_t vector, std::size_t column,
                         const std::string& expected) {
  throw Error(ErrorKind::argument, "activations: found " + found + " at [" +
                                       std::to_string(vector) + ", " + std::to_string(column) +
                                       "], expected " + expected);
}

}  // namespace

void check_activation_bits(unsigned bits) {
  if (bits == 8 || bits == 16 || bits == 32) return;
  throw Error(ErrorKind::argument,
              "activation_bits: found " + std::to_string(bits) + ", expected 8, 16 or 32");
}

const FloatKernels& float_kernels(Tier tier) { return NESCIO_PICK(tier, kFloatKernels); }

double quantize_vector(const FloatKernels& kernels, const float* x, std::size_t n, unsigned bits,
                       std::size_t vector, std::int32_t* out) {
  const std::uint32_t max_magnitude = kernels.max_magnitude(x, n);
  if (max_magnitude > kMaxFinite) check_finite(x, n, vector);
  if (max_magnitude == 0) {
    std::fill(out, out + n, 0);
    return 0;
  }
  const double a = std::bit_cast<float>(max_magnitude), q_max = max_quantized(bits);
  kernels.quantize(x, n, q_max, a, out);
  return a / q_max;
}

void check_finite(const float* x, std::size_t n, std::size_t vector) {
  const std::size_t j = std::find_if_not(x, x + n, [](float v) { return std::isfinite(v); }) - x;
  if (j == n) return;
  refuse(std::isnan(x[j]) ? "NaN" : x[j] < 0 ? "-inf" : "inf", vector, j, "finite numbers");
}

void check_range(const std::int32_t* x, std::size_t n, unsigned bits, std::size_t vector) {
  if (bits == 32) return;
  const std::int32_t min = -(std::int32_t{1} << (bits - 1)), max = -min - 1;
  const auto fits = [=](std::int32_t v) { return min <= v && v <= max; };
  const std::size_t j = std::find_if_not(x, x + n, fits) - x;
  if (j == n) return;
  refuse(std::to_string(x[j]), vector, j,
         std::to_string(min) + " to " + std::to_string(max) + ", the range of " +
             std::to_string(bits) + " bits");
}

namespace portable {

std::uint32_t max_magnitude(const float* x, std::size_t n) {
  std::uint32_t max = 0;
  for (std::size_t j = 0; j < n; ++j) {
    max = std::max(max, std::bit_cast<std::uint32_t>(x[j]) & kMagnitude);
  }
  return max;
}

void quantize(const float* x, std::size_t n, double q_max, double a, std::int32_t* out) {
  for (std::size_t j = 0; j < n; ++j) {
    out[j] = static_cast<std::int32_t>(std::nearbyint((double{x[j]} * q_max) / a));
  }
}

void scale(const std::int64_t* y, std::size_t n, const float* scales, double step,
           const float* bias, float* out) {
  for (std::size_t i = 0; i < n; ++i) {
    const double scaled = static_cast<double>(y[i]) * double{scales[i]};
    out[i] = static_cast<float>(scaled * step);
    if (bias != nullptr) out[i] += bias[i];
  }
}

const FloatKernels kFloatKernels = {max_magnitude, quantize, scale};

}  // namespace portable
}  // namespace nescio::bitserial
