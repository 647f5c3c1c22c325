#pragma once

// The compression function of SHA-256 (FIPS 180-4, section 6.2.2) on words W (base/word.h). It accesses
// no memory but its arguments, and its loops are unrolled, so arrays are registers.

#include <cstdint>

#include "base/word.h"

namespace nescio::hash {

struct Sha256 {
  using Word = std::uint32_t;

  /// The initial value of the state (section 5.3.3).
  template <class W>
  NESCIO_INLINE static void start(W* state) {
    constexpr Word initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    NESCIO_UNROLL
    for (int i = 0; i < 8; ++i) state[i] = broadcast<W>(initial[i]);
  }

  /// Compresses a block of 16 words into the state. Consumes the block.
  template <class W>
  NESCIO_INLINE static void compress(W* w, W* state) {
    constexpr Word k[64] = {0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
                            0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
                            0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
                            0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
                            0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
                            0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
                            0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
                            0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
                            0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
                            0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
                            0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
    // Instead of shifting the variables a to h in every round, the indices rotate: in round t the i-th
    // variable of the standard is x[(i - t) mod 8].
    W x[8];
    NESCIO_UNROLL
    for (int i = 0; i < 8; ++i) x[i] = state[i];
    NESCIO_UNROLL
    for (int t = 0; t < 64; ++t) {
      if (t >= 16) {
        w[t % 16] += small_sigma<17, 19, 10>(w[(t - 2) % 16]) + w[(t - 7) % 16] +
                     small_sigma<7, 18, 3>(w[(t - 15) % 16]);
      }
      const int n = 64 - t;
      round(x[n % 8], x[(n + 1) % 8], x[(n + 2) % 8], x[(n + 3) % 8], x[(n + 4) % 8],
            x[(n + 5) % 8], x[(n + 6) % 8], x[(n + 7) % 8], w[t % 16] + k[t]);
    }
    NESCIO_UNROLL
    for (int i = 0; i < 8; ++i) state[i] += x[i];
  }

  /// SHA-256 is big-endian.
  template <class W>
  NESCIO_INLINE static W swap_bytes(const W& x) {
#if defined(__AVX2__) && !defined(__CUDACC__)
    if constexpr (sizeof(W) > sizeof(Word)) return shuffle_bytes<0x0405060700010203>(x);
#endif
    return (rotate_left<Word, 8>(x) & Word{0x00ff00ff}) |
           (rotate_left<Word, 24>(x) & Word{0xff00ff00});
  }

 private:
  template <class W>
  NESCIO_INLINE static void round(const W& a, const W& b, const W& c, W& d, const W& e, const W& f,
                                  const W& g, W& h, const W& word) {
    const W t1 = h + big_sigma<6, 11, 25>(e) + (g ^ (e & (f ^ g))) + word;
    const W t2 = big_sigma<2, 13, 22>(a) + majority(a, b, c);
    d += t1;
    h = t1 + t2;
  }

  template <class W>
  NESCIO_INLINE static W majority(const W& a, const W& b, const W& c) {
#if defined(__AVX512F__) && !defined(__CUDACC__)
    if constexpr (sizeof(W) == 64) {
      return (W)_mm512_ternarylogic_epi32((__m512i)a, (__m512i)b, (__m512i)c, 0xE8);
    }
#endif
    return b ^ ((a ^ b) & (b ^ c));  // the next round computes a ^ b again, as its b ^ c
  }

  template <unsigned i, unsigned j, unsigned k, class W>
  NESCIO_INLINE static W big_sigma(const W& x) {
    return rotate_right<i>(x) ^ rotate_right<j>(x) ^ rotate_right<k>(x);
  }

  template <unsigned i, unsigned j, unsigned k, class W>
  NESCIO_INLINE static W small_sigma(const W& x) {
    return rotate_right<i>(x) ^ rotate_right<j>(x) ^ (x >> k);
  }

  template <unsigned bits, class W>
  NESCIO_INLINE static W rotate_right(const W& x) {
    return rotate_left<Word, 32 - bits>(x);
  }
};

}  // namespace nescio::hash
