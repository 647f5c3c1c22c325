#pragma once

// The generator `sha256`: SHA-256 (FIPS 180-4) of the node and one more byte,
//
//   G(s) = SHA-256(s || 0)                        the two children
//   H(s) = SHA-256(s || 1) || SHA-256(s || 2)     the leaf
//
// All messages have 17 bytes. Each fits one block of the compression function, none is a prefix of
// another (which excludes length extension), and the last byte separates them. The assumption is that
// SHA-256, keyed by the first 16 bytes of a message of this length, is a pseudorandom function.

#include "prg/word.h"

namespace nescio::prg {

struct Sha256Core {
  using Word = std::uint32_t;
  static constexpr unsigned kRadixBits = 1;

  template <class W>
  NESCIO_INLINE static void children(const W* node, W* out) {
    hash(node, 0, out);
  }

  template <class W>
  NESCIO_INLINE static void leaf(const W* node, W* out) {
    hash(node, 1, out);
    hash(node, 2, out + 8);
  }

 private:
  /// The 8 words of SHA-256(s || tweak), little-endian like the node's.
  template <class W>
  NESCIO_INLINE static void hash(const W* node, Word tweak, W* out) {
    constexpr Word kMessageBits = 17 * 8;
    W message[16]{};
    NESCIO_UNROLL
    for (int w = 0; w < 4; ++w) message[w] = swap_bytes(node[w]);
    message[4] = broadcast<W>(tweak << 24 | Word{0x800000});  // padding begins with a 1
    message[15] = broadcast<W>(kMessageBits);
    compress(message, out);
    NESCIO_UNROLL
    for (int w = 0; w < 8; ++w) out[w] = swap_bytes(out[w]);
  }

  /// One compression from the initial value (section 6.2.2). Consumes the message.
  template <class W>
  NESCIO_INLINE static void compress(W* w, W* out) {
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
    constexpr Word initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    // Instead of shifting the variables a to h in every round, the indices rotate: in round t the i-th
    // variable of the standard is x[(i - t) mod 8].
    W x[8];
    NESCIO_UNROLL
    for (int i = 0; i < 8; ++i) x[i] = broadcast<W>(initial[i]);
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
    for (int i = 0; i < 8; ++i) out[i] = x[i] + initial[i];
  }

  template <class W>
  NESCIO_INLINE static void round(const W& a, const W& b, const W& c, W& d, const W& e, const W& f,
                                  const W& g, W& h, const W& word) {
    const W t1 = h + big_sigma<6, 11, 25>(e) + (g ^ (e & (f ^ g))) + word;
    const W t2 = big_sigma<2, 13, 22>(a) + ((a & b) | (c & (a | b)));
    d += t1;
    h = t1 + t2;
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

  /// SHA-256 is big-endian.
  template <class W>
  NESCIO_INLINE static W swap_bytes(const W& x) {
    return (rotate_left<Word, 8>(x) & Word{0x00ff00ff}) |
           (rotate_left<Word, 24>(x) & Word{0xff00ff00});
  }
};

}  // namespace nescio::prg
