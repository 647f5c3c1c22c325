#pragma once

// The generators `chacha20`, `chacha12` and `chacha8`: the ChaCha block function (Bernstein 2008;
// RFC 8439, section 2.3) with that many rounds and the node as its 128-bit key, in the layout of
// Bernstein's paper for keys of that size: the constants "expand 16-byte k", the key twice, a
// 64-bit counter, a 64-bit nonce of zero. Its 64 bytes are four blocks:
//
//   G(s) = ChaCha(key = s, counter = 0)     the four children
//   H(s) = ChaCha(key = s, counter = 1)     the leaf
//
// The assumption is that ChaCha is a pseudorandom function of its key.

#include "base/word.h"

namespace nescio::prg {

template <unsigned rounds>
struct ChaChaCore {
  static_assert(rounds % 2 == 0);
  using Word = std::uint32_t;
  static constexpr unsigned kRadixBits = 2;

  template <class W>
  NESCIO_INLINE static void children(const W* node, W* out) {
    keystream(node, 0, out);
  }

  template <class W>
  NESCIO_INLINE static void leaf(const W* node, W* out) {
    keystream(node, 1, out);
  }

  /// The block function itself (RFC 8439, section 2.3): 16 words to 16 words, not in place.
  template <class W>
  NESCIO_INLINE static void block(const W* in, W* x) {
    NESCIO_UNROLL
    for (int w = 0; w < 16; ++w) x[w] = in[w];
    permute(x);
    NESCIO_UNROLL
    for (int w = 0; w < 16; ++w) x[w] += in[w];
  }

 private:
  template <class W>
  NESCIO_INLINE static void keystream(const W* key, Word counter, W* x) {
    constexpr Word constants[4] = {0x61707865, 0x3120646e, 0x79622d36, 0x6b206574};
    W in[16]{};
    NESCIO_UNROLL
    for (int w = 0; w < 4; ++w) {
      in[w] = broadcast<W>(constants[w]);
      in[4 + w] = in[8 + w] = key[w];
    }
    in[12] = broadcast<W>(counter);
    block(in, x);
  }

  template <class W>
  NESCIO_INLINE static void permute(W* x) {
    for (unsigned round = 0; round < rounds; round += 2) {
      NESCIO_UNROLL
      for (unsigned i = 0; i < 4; ++i) quarter_round(x[i], x[4 + i], x[8 + i], x[12 + i]);
      NESCIO_UNROLL
      for (unsigned i = 0; i < 4; ++i) {
        quarter_round(x[i], x[4 + (i + 1) % 4], x[8 + (i + 2) % 4], x[12 + (i + 3) % 4]);
      }
    }
  }

  template <class W>
  NESCIO_INLINE static void quarter_round(W& a, W& b, W& c, W& d) {
    a += b, d = rotate_left<Word, 16>(d ^ a);
    c += d, b = rotate_left<Word, 12>(b ^ c);
    a += b, d = rotate_left<Word, 8>(d ^ a);
    c += d, b = rotate_left<Word, 7>(b ^ c);
  }
};

}  // namespace nescio::prg
