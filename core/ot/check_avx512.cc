// Compiled for AVX-512, VAES and VPCLMULQDQ. Includes nothing that could leave shared code behind.
#include <immintrin.h>

#include "ot/check.h"
#include "prg/aes128_avx512_impl.h"

namespace nescio::ot::avx512 {
namespace {

namespace aes = prg::aes128::avx512;
using aes::first_blocks;
using aes::kRegisters;

inline __m128i xor_of_blocks(__m512i x) {
  const __m256i half = _mm256_xor_si256(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
  return _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

/// Sums of the low, middle and high parts of products, four sums side by side.
struct Sums {
  __m512i low = _mm512_setzero_si512(), middle = low, high = low;

  void add(__m512i a, __m512i b) {
    constexpr int kXor3 = 0x96;
    low = _mm512_xor_si512(low, _mm512_clmulepi64_epi128(a, b, 0x00));
    high = _mm512_xor_si512(high, _mm512_clmulepi64_epi128(a, b, 0x11));
    middle = _mm512_ternarylogic_epi64(middle, _mm512_clmulepi64_epi128(a, b, 0x01),
                                       _mm512_clmulepi64_epi128(a, b, 0x10), kXor3);
  }

  Product product() const {
    const __m128i l = xor_of_blocks(low), m = xor_of_blocks(middle), h = xor_of_blocks(high);
    Product p;
    _mm_store_si128(reinterpret_cast<__m128i*>(&p.low), _mm_xor_si128(l, _mm_slli_si128(m, 8)));
    _mm_store_si128(reinterpret_cast<__m128i*>(&p.high), _mm_xor_si128(h, _mm_srli_si128(m, 8)));
    return p;
  }
};

/// Adds chi[k] * leaves[k] for the first of n leaves, at most 4 * kRegisters.
inline void add_registers(const __m512i* chi, const Block* leaves, std::size_t n, Sums* sums) {
  if (n >= 4 * kRegisters) {
    for (int k = 0; k < kRegisters; ++k) {
      sums->add(chi[k], _mm512_loadu_si512(leaves + 4 * k));
    }
  } else {
    for (std::size_t k = 0; 4 * k < n; ++k) {
      sums->add(chi[k], _mm512_maskz_loadu_epi64(first_blocks(n - 4 * k), leaves + 4 * k));
    }
  }
}

Product multiply(Block a, Block b) {
  Sums sums;
  sums.add(_mm512_maskz_loadu_epi64(first_blocks(1), &a),
           _mm512_maskz_loadu_epi64(first_blocks(1), &b));
  return sums.product();
}

void add_products(const prg::aes128::RoundKeys& round_keys, std::uint64_t first,
                  const Block* leaves, std::size_t n, Product* sum) {
  const aes::Keys keys = aes::load_keys(round_keys);
  __m512i counters = aes::first_counters(first);
  Sums sums;
  for (std::size_t i = 0; i < n; i += 4 * kRegisters) {
    __m512i chi[kRegisters];
    for (int k = 0; k < kRegisters; ++k) chi[k] = aes::add_to_counters(counters, 4 * k);
    counters = aes::add_to_counters(counters, 4 * kRegisters);
    aes::encrypt_registers<kRegisters>(keys, chi);
    add_registers(chi, leaves + i, n - i, &sums);
  }
  const Product p = sums.product();
  sum->low ^= p.low;
  sum->high ^= p.high;
}

}  // namespace

const CheckKernels kCheckKernels = {multiply, add_products};

}  // namespace nescio::ot::avx512
