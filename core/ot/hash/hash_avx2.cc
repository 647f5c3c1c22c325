// Compiled for AVX2 and AES-NI. Includes nothing that could leave shared code behind.
#include <immintrin.h>

#include "ot/hash/hash.h"
#include "prg/aes128_avx2_impl.h"

namespace nescio::ot::avx2 {

namespace aes = prg::aes128::avx2;
using aes::kLanes;

void hash_period(const RoundKeys& round_keys, const Block* blocks, std::size_t n, Block first_tweak,
                 Block delta, Block* out) {
  const aes::Keys keys = aes::load_keys(round_keys);
  const __m128i shift = aes::load(&delta), first = aes::load(&first_tweak);
  for (std::size_t i = 0; i < n; i += kLanes) {
    __m128i inner[kLanes], outer[kLanes];
    aes::load_lanes(blocks + i, n - i, inner);
    for (int k = 0; k < kLanes; ++k) inner[k] = _mm_xor_si128(inner[k], shift);
    aes::encrypt_lanes(keys, inner);
    for (std::size_t k = 0; k < kLanes; ++k) {
      const auto number = static_cast<long long>(i + k);
      outer[k] = _mm_xor_si128(inner[k], _mm_add_epi64(first, _mm_set_epi64x(0, number)));
    }
    aes::encrypt_lanes(keys, outer);
    for (int k = 0; k < kLanes; ++k) outer[k] = _mm_xor_si128(outer[k], inner[k]);
    aes::store_lanes(out + i, n - i, outer);
  }
}

}  // namespace nescio::ot::avx2
