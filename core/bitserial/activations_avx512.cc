// Compiled for AVX-512. Includes nothing that could leave shared code behind.
#include <immintrin.h>

#include "bitserial/activations.h"

namespace nescio::bitserial::avx512 {
namespace {

/// A mask of the first n of 16 lanes, or of 8.
inline __mmask16 first_of_16(std::size_t n) {
  return static_cast<__mmask16>(n < 16 ? (1u << n) - 1 : 0xFFFF);
}
inline __mmask8 first_of_8(std::size_t n) {
  return static_cast<__mmask8>(n < 8 ? (1u << n) - 1 : 0xFF);
}

std::uint32_t max_magnitude(const float* x, std::size_t n) {
  const __m512i magnitude = _mm512_set1_epi32(0x7FFFFFFF);
  __m512i max[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
  for (std::size_t j = 0; j < n; j += 32) {
    for (std::size_t k = 0; k < 2 && j + 16 * k < n; ++k) {
      const __m512i bits = _mm512_maskz_loadu_epi32(first_of_16(n - j - 16 * k), x + j + 16 * k);
      max[k] = _mm512_max_epu32(max[k], _mm512_and_si512(bits, magnitude));
    }
  }
  return _mm512_reduce_max_epu32(_mm512_max_epu32(max[0], max[1]));
}

void quantize(const float* x, std::size_t n, double q_max, double a, std::int32_t* out) {
  const __m512d by = _mm512_set1_pd(q_max), over = _mm512_set1_pd(a);
  for (std::size_t j = 0; j < n; j += 8) {
    const __mmask8 mask = first_of_8(n - j);
    const __m512d values = _mm512_cvtps_pd(_mm256_maskz_loadu_ps(mask, x + j));
    const __m512d quotients = _mm512_div_pd(_mm512_mul_pd(values, by), over);
    _mm256_mask_storeu_epi32(
        out + j, mask,
        _mm512_cvt_roundpd_epi32(quotients, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
}

void scale(const std::int64_t* y, std::size_t n, const float* scales, double step,
           const float* bias, float* out) {
  const __m512d steps = _mm512_set1_pd(step);
  for (std::size_t i = 0; i < n; i += 8) {
    const __mmask8 mask = first_of_8(n - i);
    const __m512d products = _mm512_cvtepi64_pd(_mm512_maskz_loadu_epi64(mask, y + i));
    const __m512d by = _mm512_cvtps_pd(_mm256_maskz_loadu_ps(mask, scales + i));
    __m256 result = _mm512_cvtpd_ps(_mm512_mul_pd(_mm512_mul_pd(products, by), steps));
    if (bias != nullptr) result = _mm256_add_ps(result, _mm256_maskz_loadu_ps(mask, bias + i));
    _mm256_mask_storeu_ps(out + i, mask, result);
  }
}

}  // namespace

const FloatKernels kFloatKernels = {max_magnitude, quantize, scale};

}  // namespace nescio::bitserial::avx512
