#include "bitserial/activations.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "base/error.h"

namespace nescio::bitserial {
namespace {

constexpr std::uint32_t kMagnitude = 0x7FFFFFFF, kLargestFinite = 0x7F7FFFFF;

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
                       std::size_t number, std::int32_t* out) {
  const std::uint32_t largest = kernels.largest(x, n);
  if (largest > kLargestFinite) check_finite(x, n, number);
  if (largest == 0) {
    std::fill(out, out + n, 0);
    return 0;
  }
  const double a = std::bit_cast<float>(largest), top = top_of(bits);
  kernels.quantize(x, n, top, a, out);
  return a / top;
}

void check_finite(const float* x, std::size_t n, std::size_t number) {
  const std::size_t j = std::find_if_not(x, x + n, [](float v) { return std::isfinite(v); }) - x;
  if (j == n) return;
  refuse(std::isnan(x[j]) ? "NaN" : x[j] < 0 ? "-inf" : "inf", number, j, "finite numbers");
}

void check_range(const std::int32_t* x, std::size_t n, unsigned bits, std::size_t number) {
  if (bits == 32) return;
  const std::int32_t least = -(std::int32_t{1} << (bits - 1)), most = -least - 1;
  const auto fits = [=](std::int32_t v) { return least <= v && v <= most; };
  const std::size_t j = std::find_if_not(x, x + n, fits) - x;
  if (j == n) return;
  refuse(std::to_string(x[j]), number, j,
         std::to_string(least) + " to " + std::to_string(most) + ", the range of " +
             std::to_string(bits) + " bits");
}

namespace portable {

std::uint32_t largest(const float* x, std::size_t n) {
  std::uint32_t most = 0;
  for (std::size_t j = 0; j < n; ++j) {
    most = std::max(most, std::bit_cast<std::uint32_t>(x[j]) & kMagnitude);
  }
  return most;
}

void quantize(const float* x, std::size_t n, double top, double a, std::int32_t* out) {
  for (std::size_t j = 0; j < n; ++j) {
    out[j] = static_cast<std::int32_t>(std::nearbyint((double{x[j]} * top) / a));
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

const FloatKernels kFloatKernels = {largest, quantize, scale};

}  // namespace portable
}  // namespace nescio::bitserial
