#pragma once

// The generator `insecure_highwayhash`: HighwayHash-256 (Alakuijala, Cox and Wassenberg 2016) with
// the 256-bit key s || s, of one packet of 32 bytes: a small number, little-endian,
//
//   G(s) = HighwayHash(s || s, 0)                                the two children
//   H(s) = HighwayHash(s || s, 1) || HighwayHash(s || s, 2)      the leaf
//
// HighwayHash has no published proof or independent analysis at the 128-bit level; it is included for
// comparison.

#include "base/word.h"

namespace nescio::prg {

struct HighwayHashCore {
  using Word = std::uint64_t;
  static constexpr unsigned kRadixBits = 1;

  template <class W>
  NESCIO_INLINE static void children(const W* node, W* out) {
    hash_number(node, 0, out);
  }

  template <class W>
  NESCIO_INLINE static void leaf(const W* node, W* out) {
    hash_number(node, 1, out);
    hash_number(node, 2, out + 4);
  }

  /// HighwayHash-256 of one packet: 4 words of key, 4 words of message, 4 words of output.
  template <class W>
  NESCIO_INLINE static void hash(const W* key, const W* packet, W* out) {
    State<W> s;
    start(s, key);
    update(s, packet);
    for (int i = 0; i < 10; ++i) {
      const W permuted[4] = {swap_halves(s.v0[2]), swap_halves(s.v0[3]), swap_halves(s.v0[0]),
                             swap_halves(s.v0[1])};
      update(s, permuted);
    }
    NESCIO_UNROLL
    for (int i = 0; i < 4; i += 2) {
      reduce(s.v1[i + 1] + s.mul1[i + 1], s.v1[i] + s.mul1[i], s.v0[i + 1] + s.mul0[i + 1],
             s.v0[i] + s.mul0[i], out + i);
    }
  }

 private:
  template <class W>
  struct State {
    W v0[4], v1[4], mul0[4], mul1[4];
  };

  template <class W>
  NESCIO_INLINE static void hash_number(const W* node, Word number, W* out) {
    const W key[4] = {node[0], node[1], node[0], node[1]};
    const W packet[4] = {broadcast<W>(number), W{}, W{}, W{}};
    hash(key, packet, out);
  }

  /// The initial state: digits of pi (nothing-up-my-sleeve numbers).
  template <class W>
  NESCIO_INLINE static void start(State<W>& s, const W* key) {
    constexpr Word mul0[4] = {0xdbe6d5d5fe4cce2f, 0xa4093822299f31d0, 0x13198a2e03707344,
                              0x243f6a8885a308d3};
    constexpr Word mul1[4] = {0x3bd39e10cb0ef593, 0xc0acf169b5f18a8c, 0xbe5466cf34e90c6c,
                              0x452821e638d01377};
    NESCIO_UNROLL
    for (int i = 0; i < 4; ++i) {
      s.mul0[i] = broadcast<W>(mul0[i]);
      s.mul1[i] = broadcast<W>(mul1[i]);
      s.v0[i] = key[i] ^ mul0[i];
      s.v1[i] = swap_halves(key[i]) ^ mul1[i];
    }
  }

  template <class W>
  NESCIO_INLINE static void update(State<W>& s, const W* packet) {
    NESCIO_UNROLL
    for (int i = 0; i < 4; ++i) {
      s.v1[i] += s.mul0[i] + packet[i];
      s.mul0[i] ^= multiply_halves(s.v1[i], s.v0[i]);
      s.v0[i] += s.mul1[i];
      s.mul1[i] ^= multiply_halves(s.v0[i], s.v1[i]);
    }
    zipper_merge(s.v1, s.v0);
    zipper_merge(s.v0, s.v1);
  }

  /// Adds to each pair of words the bytes of the other pair, permuted so that the well-mixed middle
  /// bytes of a product reach the other positions.
  template <class W>
  NESCIO_INLINE static void zipper_merge(const W* from, W* to) {
    NESCIO_UNROLL
    for (int i = 0; i < 4; i += 2) {
      to[i] += pick_bytes<0x000f010e05020c03>(from[i], from[i + 1]);
      to[i + 1] += pick_bytes<0x070806090d0a040b>(from[i], from[i + 1]);
    }
  }

  /// Byte i is byte `order >> 8 i & 0xFF` of low || high.
  template <Word order, class W>
  NESCIO_INLINE static W pick_bytes(const W& low, const W& high) {
    constexpr Word in_high = (order >> 3) & 0x0101010101010101;  // 1 where the byte is high's
    constexpr Word place = order & 0x0707070707070707;
#if defined(__AVX2__) && !defined(__CUDACC__)
    if constexpr (sizeof(W) > sizeof(Word)) {
      constexpr Word none = 0x8080808080808080;
      return shuffle_bytes<(place | in_high << 7)>(low) |
             shuffle_bytes<(place | (none ^ in_high << 7))>(high);
    }
#endif
    W picked{};
    NESCIO_UNROLL
    for (unsigned i = 0; i < 64; i += 8) {
      const W from = in_high >> i & 1 ? high : low;
      picked |= (from >> (8 * (place >> i & 7)) & Word{0xff}) << i;
    }
    return picked;
  }

  /// The lower half of a times the upper half of b.
  template <class W>
  NESCIO_INLINE static W multiply_halves(const W& a, const W& b) {
#if defined(__AVX2__) && !defined(__CUDACC__)
    if constexpr (sizeof(W) == 32) return (W)_mm256_mul_epu32((__m256i)a, (__m256i)(b >> 32));
#if defined(__AVX512F__)
    if constexpr (sizeof(W) == 64) return (W)_mm512_mul_epu32((__m512i)a, (__m512i)(b >> 32));
#endif
#endif
    return (a & Word{0xffffffff}) * (b >> 32);
  }

  template <class W>
  NESCIO_INLINE static W swap_halves(const W& x) {
    return rotate_left<Word, 32>(x);
  }

  /// The 256-bit number a3 a2 a1 a0 without its two highest bits, modulo x^128 + x^2 + x.
  template <class W>
  NESCIO_INLINE static void reduce(const W& a3, const W& a2, const W& a1, const W& a0, W* out) {
    const W top = a3 & Word{0x3fffffffffffffff};
    out[1] = a1 ^ ((top << 1) | (a2 >> 63)) ^ ((top << 2) | (a2 >> 62));
    out[0] = a0 ^ (a2 << 1) ^ (a2 << 2);
  }
};

}  // namespace nescio::prg
