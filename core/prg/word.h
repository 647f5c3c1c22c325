#pragma once

// What the generators' cores are written with. A core is the code of one generator for one thread:
// it computes on words W, each of which is one word of one node (portable code, a thread of a GPU)
// or a vector of the compiler's, whose lane i is that word of node i (AVX2, AVX-512). So one source
// serves every tier. A core is a struct with
//
//   Word        std::uint32_t or std::uint64_t
//   kRadixBits  log2 of the arity
//   children    from the words of a node, little-endian, those of its children
//   leaf        from the words of a node those of its 64 bytes of output
//
// and touches no memory but its arguments; its loops have fixed bounds and are unrolled, so that
// arrays are registers.

#include <cstddef>
#include <cstdint>

#include "base/block.h"

#if defined(__AVX2__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

/// Unrolls a loop, so that what it indexes can be registers.
#if defined(__CUDACC__) || defined(__clang__)
#define NESCIO_UNROLL _Pragma("unroll")
#elif defined(__SANITIZE_ADDRESS__)
#define NESCIO_UNROLL  // sanitizers would check each copy, and take minutes to compile them
#else
#define NESCIO_UNROLL _Pragma("GCC unroll 64")
#endif

namespace nescio::prg {

/// The same word in every lane.
template <class W, class Word>
NESCIO_INLINE W broadcast(Word word) {
  return W{} ^ word;
}

/// In every 64 bits byte i is byte `order >> 8 i & 0xFF` of x, or zero where that is 0x80 or more.
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

}  // namespace nescio::prg
