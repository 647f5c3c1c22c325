// Compiled for AVX2. Includes nothing that could leave shared code behind.
#include <immintrin.h>

#include "bitserial/activations.h"

namespace nescio::bitserial::avx2 {
namespace {

std::uint32_t max_magnitude(const float* x, std::size_t n) {
  const __m256i magnitude = _mm256_set1_epi32(0x7FFFFFFF);
  __m256i max = _mm256_setzero_si256();
  std::size_t j = 0;
  for (; j + 8 <= n; j += 8) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + j));
    max = _mm256_max_epu32(max, _mm256_and_si256(bits, magnitude));
  }
  std::uint32_t lanes[8], result = portable::max_magnitude(x + j, n - j);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), max);
  for (const std::uint32_t lane : lanes) result = lane > result ? lane : result;
  return result;
}

void quantize(const float* x, std::size_t n, double q_max, double a, std::int32_t* out) {
  const __m256d by = _mm256_set1_pd(q_max), over = _mm256_set1_pd(a);
  std::size_t j = 0;
  for (; j + 4 <= n; j += 4) {
    const __m256d values = _mm256_cvtps_pd(_mm_loadu_ps(x + j));
    const __m256d quotients = _mm256_div_pd(_mm256_mul_pd(values, by), over);
    const __m128i integers = _mm256_cvtpd_epi32(
        _mm256_round_pd(quotients, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + j), integers);
  }
  portable::quantize(x + j, n - j, q_max, a, out + j);
}

}  // namespace

const FloatKernels kFloatKernels = {max_magnitude, quantize, portable::scale};

}  // namespace nescio::bitserial::avx2
