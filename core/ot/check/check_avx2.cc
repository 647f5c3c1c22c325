// Compiled for AVX2, AES-NI and PCLMULQDQ. Includes nothing that could leave shared code behind.
#include <immintrin.h>

#include "ot/check/check.h"
#include "prg/aes128_avx2_impl.h"

namespace nescio::ot::avx2 {
namespace {

namespace aes = prg::aes128::avx2;
using aes::load;
using aes::store;

/// Sums of the low, middle and high parts of products.
struct Sums {
  __m128i low = _mm_setzero_si128(), middle = low, high = low;

  void add(__m128i a, __m128i b) {
    low = _mm_xor_si128(low, _mm_clmulepi64_si128(a, b, 0x00));
    high = _mm_xor_si128(high, _mm_clmulepi64_si128(a, b, 0x11));
    middle = _mm_xor_si128(
        middle, _mm_xor_si128(_mm_clmulepi64_si128(a, b, 0x01), _mm_clmulepi64_si128(a, b, 0x10)));
  }

  Product product() const {
    Product p;
    store(&p.low, _mm_xor_si128(low, _mm_slli_si128(middle, 8)));
    store(&p.high, _mm_xor_si128(high, _mm_srli_si128(middle, 8)));
    return p;
  }
};

Product multiply(Block a, Block b) {
  Sums sums;
  sums.add(load(&a), load(&b));
  return sums.product();
}

Product sum_products(const Block* factors, const Block* leaves, std::size_t n) {
  Sums sums;
  for (std::size_t i = 0; i < n; ++i) sums.add(load(factors + i), load(leaves + i));
  return sums.product();
}

}  // namespace

const CheckKernels kCheckKernels = {multiply, sum_products};

}  // namespace nescio::ot::avx2
