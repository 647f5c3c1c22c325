#pragma once

// Words W of code that is written once for every tier: either one word of a number (portable code, a GPU
// thread), or a compiler vector with that word of several numbers, one per lane (AVX2, AVX-512).
// base/lanes_impl.h moves numbers into vectors and back.

#include <cstddef>
#include <cstdint>

#include "base/block.h"

#if defined(__AVX2__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

/// Unrolls a loop, so that indexed arrays can be registers.
#if defined(__CUDACC__) || defined(__clang__)
#define NESCIO_UNROLL _Pragma("unroll")
#elif defined(__SANITIZE_ADDRESS__)
#define NESCIO_UNROLL  // sanitizers check each copy, which would take minutes to compile
#else
#define NESCIO_UNROLL _Pragma("GCC unroll 64")
#endif

namespace nescio {

/// The same word in every lane.
template <class W, class Word>
NESCIO_INLINE W broadcast(Word word) {
  return W{} ^ word;
}

/// Permutes the bytes of every 64 bits: byte i is byte `order >> 8 i & 0xFF` of x, or zero if that is
/// 0x80 or more.
#if defined(__AVX2__) && !defined(__CUDACC__)
template <std::uint64_t order, class W>
NESCIO_INLINE W shuffle_bytes(W x) {
  // The instruction counts bytes from the start of each 128 bits.
  constexpr auto low = static_cast<long long>(order);
  constexpr auto high = static_cast<long long>(order | 0x0808080808080808);
  if constexpr (sizeof(W) == 32) {
    return (W)_mm256_shuffle_epi8((__m256i)x, _mm256_set_epi64x(high, low, high, low));
  } else {
    static_assert(sizeof(W) == 64);
    return (W)_mm512_shuffle_epi8((__m512i)x,
                                  _mm512_set_epi64(high, low, high, low, high, low, high, low));
  }
}
#endif

/// Every word of type Word rotated left by `bits`, which is neither 0 nor all of them.
template <class Word, unsigned bits, class W>
NESCIO_INLINE W rotate_left(W x) {
#if defined(__AVX2__) && !defined(__CUDACC__)
  if constexpr (sizeof(W) == 32 && bits % 8 == 0) {  // AVX-512 has instructions that rotate
    constexpr std::uint64_t kBytes = 0x0706050403020100;
    constexpr unsigned width = 8 * sizeof(Word);
    if constexpr (width == 64) {
      return shuffle_bytes<(kBytes << bits | kBytes >> (64 - bits))>(x);
    } else {
      constexpr std::uint64_t low = static_cast<std::uint32_t>(kBytes),
                              order = (low << bits | low >> (32 - bits)) & 0xFFFFFFFF;
      return shuffle_bytes<(order | (order + 0x04040404) << 32)>(x);
    }
  }
#endif
  return (x << bits) | (x >> (8 * sizeof(Word) - bits));
}

}  // namespace nescio
