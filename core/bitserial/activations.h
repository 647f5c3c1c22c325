#pragma once

// Quantization of activations from floating point to integers of k = 8, 16 or 32 bits, and
// conversion of products back to floating point. With a = max |x_j| and q_max = 2^(k-1) - 1, all in
// IEEE doubles,
//
//   x_j -> rint((x_j * q_max) / a)        halves to even; zeros if a is 0
//   y_i -> float32((y_i * scale_i) * (a / q_max)) + bias_i        the sum in float32
//
// All tiers return the same bits.

#include <cstddef>
#include <cstdint>

#include "base/tier.h"

namespace nescio::bitserial {

/// Throws Error(argument) unless `bits` is 8, 16 or 32.
void check_activation_bits(unsigned bits);

/// The largest quantized value, 2^(bits-1) - 1.
inline constexpr double max_quantized(unsigned bits) {
  return static_cast<double>((std::int64_t{1} << (bits - 1)) - 1);
}

struct FloatKernels {
  /// Returns the bits of the largest magnitude of n floats: above 0x7F7FFFFF if one is NaN or
  /// infinite.
  std::uint32_t (*max_magnitude)(const float* x, std::size_t n);

  /// Sets out[j] to rint((x[j] * q_max) / a), for a > 0.
  void (*quantize)(const float* x, std::size_t n, double q_max, double a, std::int32_t* out);

  /// Sets out[i] to float((y[i] * scale[i]) * step) + bias[i]. `bias` may be null.
  void (*scale)(const std::int64_t* y, std::size_t n, const float* scale, double step,
                const float* bias, float* out);
};

const FloatKernels& float_kernels(Tier tier);

/// Quantizes vector number `vector` of a batch; returns its step, a / q_max. Throws Error(argument)
/// with the position of the first element that is NaN or infinite.
double quantize_vector(const FloatKernels& kernels, const float* x, std::size_t n, unsigned bits,
                       std::size_t vector, std::int32_t* out);

/// Throws Error(argument) with the position of the first element of vector number `vector` that is
/// NaN or infinite, if any.
void check_finite(const float* x, std::size_t n, std::size_t vector);

/// Throws Error(argument) with the position of the first value of vector number `vector` that does
/// not fit in `bits` bits, if any.
void check_range(const std::int32_t* x, std::size_t n, unsigned bits, std::size_t vector);

NESCIO_TIERS(extern const FloatKernels kFloatKernels;)

namespace portable {
std::uint32_t max_magnitude(const float* x, std::size_t n);
void quantize(const float* x, std::size_t n, double q_max, double a, std::int32_t* out);
void scale(const std::int64_t* y, std::size_t n, const float* scale, double step, const float* bias,
           float* out);
}  // namespace portable

}  // namespace nescio::bitserial
