// Compiled for AVX-512 and VAES. Includes nothing that could leave shared code behind.
#include <immintrin.h>

#include "ot/hash/hash.h"
#include "prg/aes128_avx512_impl.h"

namespace nescio::ot::avx512 {
namespace {

namespace aes = prg::aes128::avx512;
using aes::kRegisters;

/// Hashes `count` registers of blocks x in place. `tweak` holds the tweaks of the first register;
/// those of each following register are larger by four.
template <int count>
inline void hash_registers(const aes::Keys& keys, __m512i tweak, __m512i* x) {
  __m512i outer[count];
  aes::encrypt_registers<count>(keys, x);
  for (int i = 0; i < count; ++i) {
    outer[i] = _mm512_xor_si512(x[i], aes::add_to_counters(tweak, 4 * i));
  }
  aes::encrypt_registers<count>(keys, outer);
  for (int i = 0; i < count; ++i) x[i] = _mm512_xor_si512(x[i], outer[i]);
}

inline __m512i broadcast(Block b) {
  return _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(&b)));
}

}  // namespace

void hash_period(const RoundKeys& round_keys, const Block* blocks, std::size_t n, Block first_tweak,
                 Block delta, Block* out) {
  const aes::Keys keys = aes::load_keys(round_keys);
  const __m512i shift = broadcast(delta);
  __m512i tweak =
      _mm512_add_epi64(broadcast(first_tweak), _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0));
  std::size_t i = 0;
  for (; i + 4 * kRegisters <= n; i += 4 * kRegisters) {
    __m512i x[kRegisters];
    for (int k = 0; k < kRegisters; ++k) {
      x[k] = _mm512_xor_si512(_mm512_loadu_si512(blocks + i + 4 * k), shift);
    }
    hash_registers<kRegisters>(keys, tweak, x);
    for (int k = 0; k < kRegisters; ++k) _mm512_storeu_si512(out + i + 4 * k, x[k]);
    tweak = aes::add_to_counters(tweak, 4 * kRegisters);
  }
  for (; i < n; i += 4) {
    const __mmask8 mask = aes::first_blocks(n - i);
    __m512i x = _mm512_xor_si512(_mm512_maskz_loadu_epi64(mask, blocks + i), shift);
    hash_registers<1>(keys, tweak, &x);
    _mm512_mask_storeu_epi64(out + i, mask, x);
    tweak = aes::add_to_counters(tweak, 4);
  }
}

}  // namespace nescio::ot::avx512
