// Compiled for AVX-512, VAES and VPCLMULQDQ. Includes nothing that could leave shared code behind.
#include <immintrin.h>

#include "ot/check/check.h"
#include "prg/aes128_avx512_impl.h"

namespace nescio::ot::avx512 {
namespace {

namespace aes = prg::aes128::avx512;
using aes::first_blocks;

inline __m128i xor_of_blocks(__m512i x) {
  const __m256i half = _mm256_xor_si256(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
  return _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

/// Sets both halves of each block to the XOR of its halves.
inline __m512i folded(__m512i x) {
  return _mm512_xor_si512(x, _mm512_shuffle_epi32(x, _MM_PERM_BADC));
}

/// Sums of the three products of halves in a product of blocks (Karatsuba), four sums in parallel.
/// `middle` sums the products of the XORs of the halves.
struct Sums {
  __m512i low = _mm512_setzero_si512(), middle = low, high = low;

  void add(__m512i a, __m512i b) {
    low = _mm512_xor_si512(low, _mm512_clmulepi64_epi128(a, b, 0x00));
    high = _mm512_xor_si512(high, _mm512_clmulepi64_epi128(a, b, 0x11));
    middle = _mm512_xor_si512(middle, _mm512_clmulepi64_epi128(folded(a), folded(b), 0x00));
  }

  Sums plus(const Sums& other) const {
    Sums sum;
    sum.low = _mm512_xor_si512(low, other.low);
    sum.middle = _mm512_xor_si512(middle, other.middle);
    sum.high = _mm512_xor_si512(high, other.high);
    return sum;
  }

  Product product() const {
    const __m128i l = xor_of_blocks(low), h = xor_of_blocks(high);
    const __m128i m = _mm_xor_si128(xor_of_blocks(middle), _mm_xor_si128(l, h));
    Product p;
    _mm_store_si128(reinterpret_cast<__m128i*>(&p.low), _mm_xor_si128(l, _mm_slli_si128(m, 8)));
    _mm_store_si128(reinterpret_cast<__m128i*>(&p.high), _mm_xor_si128(h, _mm_srli_si128(m, 8)));
    return p;
  }
};

Product multiply(Block a, Block b) {
  Sums sums;
  sums.add(_mm512_maskz_loadu_epi64(first_blocks(1), &a),
           _mm512_maskz_loadu_epi64(first_blocks(1), &b));
  return sums.product();
}

Product sum_products(const Block* factors, const Block* leaves, std::size_t n) {
  Sums sums[2];  // two independent chains, to hide the latency of a multiplication
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (std::size_t k = 0; k < 2; ++k) {
      sums[k].add(_mm512_loadu_si512(factors + i + 4 * k), _mm512_loadu_si512(leaves + i + 4 * k));
    }
  }
  for (; i < n; i += 4) {
    const __mmask8 mask = first_blocks(n - i);
    sums[0].add(_mm512_maskz_loadu_epi64(mask, factors + i),
                _mm512_maskz_loadu_epi64(mask, leaves + i));
  }
  return sums[0].plus(sums[1]).product();
}

}  // namespace

const CheckKernels kCheckKernels = {multiply, sum_products};

}  // namespace nescio::ot::avx512
