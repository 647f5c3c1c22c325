// AES-128 with VAES, for files that are compiled for AVX-512. Each file that includes it has its own
// copy, so nothing here is shared.

#include <immintrin.h>

#include "base/block.h"
#include "prg/aes128.h"

namespace nescio::prg::aes128::avx512 {
namespace {

// A register holds four blocks; eight registers in flight hide the latency of the AES instructions.
constexpr int kRegisters = 8;

struct Keys {
  __m512i round[11];
};

inline Keys load_keys(const RoundKeys& keys) {
  const auto* from = reinterpret_cast<const __m128i*>(&keys);
  Keys loaded;
  for (int r = 0; r < 11; ++r) loaded.round[r] = _mm512_broadcast_i32x4(_mm_load_si128(from + r));
  return loaded;
}

template <int count>
inline void encrypt_registers(const Keys& keys, __m512i* x) {
  for (int i = 0; i < count; ++i) x[i] = _mm512_xor_si512(x[i], keys.round[0]);
#pragma GCC unroll 9
  for (int r = 1; r < 10; ++r) {
    for (int i = 0; i < count; ++i) x[i] = _mm512_aesenc_epi128(x[i], keys.round[r]);
  }
  for (int i = 0; i < count; ++i) x[i] = _mm512_aesenclast_epi128(x[i], keys.round[10]);
}

/// Sets the mask to the first `blocks` blocks of a register, two 64-bit lanes each.
inline __mmask8 first_blocks(std::size_t blocks) {
  return static_cast<__mmask8>((1u << (2 * (blocks < 4 ? blocks : 4))) - 1);
}

/// The numbers first to first + 3 as blocks.
inline __m512i first_counters(std::uint64_t first) {
  return _mm512_add_epi64(_mm512_maskz_set1_epi64(0x55, static_cast<long long>(first)),
                          _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0));
}

inline __m512i add_to_counters(__m512i counters, long long by) {
  return _mm512_add_epi64(counters, _mm512_set_epi64(0, by, 0, by, 0, by, 0, by));
}

/// sigma(hi || lo) = (hi ^ lo) || hi
inline __m512i sigma(__m512i s) {
  return _mm512_mask_xor_epi64(_mm512_shuffle_epi32(s, _MM_PERM_BADC), 0xAA, s,
                               _mm512_shuffle_epi32(s, _MM_PERM_BADC));
}

}  // namespace
}  // namespace nescio::prg::aes128::avx512
