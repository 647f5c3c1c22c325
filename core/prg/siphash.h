#pragma once

// The generator `insecure_siphash`: SipHash-2-4 (Aumasson and Bernstein 2012) with the node as its
// key, of messages of one byte; an output is 64 bits, so
//
//   G(s) = SipHash(s, 0) || ... || SipHash(s, 3)      the two children
//   H(s) = SipHash(s, 4) || ... || SipHash(s, 11)     the leaf
//
// SipHash claims to be a pseudorandom function with outputs of 64 bits against hash flooding and
// forgeries. It does not claim 128-bit security as a generator; it is included for comparison.

#include "base/word.h"

namespace nescio::prg {

struct SipHashCore {
  using Word = std::uint64_t;
  static constexpr unsigned kRadixBits = 1;

  template <class W>
  NESCIO_INLINE static void children(const W* node, W* out) {
    NESCIO_UNROLL
    for (unsigned j = 0; j < 4; ++j) out[j] = hash(node, j);
  }

  template <class W>
  NESCIO_INLINE static void leaf(const W* node, W* out) {
    NESCIO_UNROLL
    for (unsigned j = 0; j < 8; ++j) out[j] = hash(node, 4 + j);
  }

 private:
  /// SipHash-2-4 of one byte.
  template <class W>
  NESCIO_INLINE static W hash(const W* key, Word byte) {
    const Word message = Word{1} << 56 | byte;  // the length is the highest byte
    W v0 = key[0] ^ Word { 0x736f6d6570736575 }, v1 = key[1] ^ Word { 0x646f72616e646f6d };
    W v2 = key[0] ^ Word { 0x6c7967656e657261 }, v3 = key[1] ^ Word { 0x7465646279746573 };
    v3 ^= message;
    NESCIO_UNROLL
    for (int i = 0; i < 2; ++i) round(v0, v1, v2, v3);
    v0 ^= message;
    v2 ^= Word{0xff};
    NESCIO_UNROLL
    for (int i = 0; i < 4; ++i) round(v0, v1, v2, v3);
    return v0 ^ v1 ^ v2 ^ v3;
  }

  template <class W>
  NESCIO_INLINE static void round(W& v0, W& v1, W& v2, W& v3) {
    v0 += v1, v1 = rotate_left<Word, 13>(v1) ^ v0, v0 = rotate_left<Word, 32>(v0);
    v2 += v3, v3 = rotate_left<Word, 16>(v3) ^ v2;
    v0 += v3, v3 = rotate_left<Word, 21>(v3) ^ v0;
    v2 += v1, v1 = rotate_left<Word, 17>(v1) ^ v2, v2 = rotate_left<Word, 32>(v2);
  }
};

}  // namespace nescio::prg
