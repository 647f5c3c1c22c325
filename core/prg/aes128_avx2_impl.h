// AES-128 with AES-NI, for files that are compiled for AVX2. Each file that includes it has its own
// copy, so nothing here is shared.

#include <immintrin.h>

#include "base/block.h"
#include "prg/aes128.h"

namespace nescio::prg::aes128::avx2 {
namespace {

// Eight blocks in flight hide the latency of the AES instructions.
constexpr int kLanes = 8;

struct Keys {
  __m128i round[11];
};

inline Keys load_keys(const RoundKeys& keys) {
  const auto* from = reinterpret_cast<const __m128i*>(&keys);
  Keys loaded;
  for (int r = 0; r < 11; ++r) loaded.round[r] = _mm_load_si128(from + r);
  return loaded;
}

inline void encrypt_lanes(const Keys& keys, __m128i* x) {
  for (int i = 0; i < kLanes; ++i) x[i] = _mm_xor_si128(x[i], keys.round[0]);
  for (int r = 1; r < 10; ++r) {
    for (int i = 0; i < kLanes; ++i) x[i] = _mm_aesenc_si128(x[i], keys.round[r]);
  }
  for (int i = 0; i < kLanes; ++i) x[i] = _mm_aesenclast_si128(x[i], keys.round[10]);
}

inline __m128i load(const Block* b) { return _mm_load_si128(reinterpret_cast<const __m128i*>(b)); }
inline void store(Block* b, __m128i x) { _mm_store_si128(reinterpret_cast<__m128i*>(b), x); }

/// Loads the first kLanes of n blocks, padded with zeros.
inline void load_lanes(const Block* from, std::size_t n, __m128i* x) {
  if (n >= kLanes) {
    for (int k = 0; k < kLanes; ++k) x[k] = load(from + k);
  } else {
    for (std::size_t k = 0; k < kLanes; ++k) x[k] = k < n ? load(from + k) : _mm_setzero_si128();
  }
}

/// Stores the first min(n, kLanes) lanes.
inline void store_lanes(Block* to, std::size_t n, const __m128i* x) {
  if (n >= kLanes) {
    for (int k = 0; k < kLanes; ++k) store(to + k, x[k]);
  } else {
    for (std::size_t k = 0; k < kLanes && k < n; ++k) store(to + k, x[k]);
  }
}

/// sigma(hi || lo) = (hi ^ lo) || hi
inline __m128i sigma(__m128i s) {
  const __m128i swapped = _mm_shuffle_epi32(s, 0x4E);
  return _mm_xor_si128(swapped, _mm_and_si128(s, _mm_set_epi64x(-1, 0)));
}

}  // namespace
}  // namespace nescio::prg::aes128::avx2
