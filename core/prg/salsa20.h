#pragma once

// The generator `salsa20`: Salsa20/20 with the node as its 128-bit key (Bernstein, "Salsa20
// specification", section 9), nonce 0 and a 64-bit counter. Its 64 bytes are four blocks:
//
//   G(s) = Salsa20(key = s, counter = 0)     the four children
//   H(s) = Salsa20(key = s, counter = 1)     the leaf
//
// The assumption is that Salsa20 is a pseudorandom function of its key.

#include "base/word.h"

namespace nescio::prg {

struct Salsa20Core {
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

  /// The Salsa20 hash function (section 8): 16 words to 16 words, not in place.
  template <class W>
  NESCIO_INLINE static void hash(const W* in, W* x) {
    NESCIO_UNROLL
    for (int w = 0; w < 16; ++w) x[w] = in[w];
    for (int round = 0; round < 20; round += 2) double_round(x);
    NESCIO_UNROLL
    for (int w = 0; w < 16; ++w) x[w] += in[w];
  }

 private:
  /// The expansion of a 16-byte key (section 9), with the constants "expand 16-byte k".
  template <class W>
  NESCIO_INLINE static void keystream(const W* key, Word counter, W* x) {
    constexpr Word constants[4] = {0x61707865, 0x3120646e, 0x79622d36, 0x6b206574};
    W in[16]{};
    NESCIO_UNROLL
    for (int w = 0; w < 4; ++w) {
      in[5 * w] = broadcast<W>(constants[w]);
      in[1 + w] = in[11 + w] = key[w];
    }
    in[8] = broadcast<W>(counter);
    hash(in, x);
  }

  template <class W>
  NESCIO_INLINE static void double_round(W* x) {
    NESCIO_UNROLL
    for (unsigned i = 0; i < 4; ++i) {  // the columns, each from the diagonal on
      quarter_round(x[5 * i], x[(5 * i + 4) % 16], x[(5 * i + 8) % 16], x[(5 * i + 12) % 16]);
    }
    NESCIO_UNROLL
    for (unsigned i = 0; i < 4; ++i) {  // the rows
      quarter_round(x[5 * i], x[4 * i + (i + 1) % 4], x[4 * i + (i + 2) % 4],
                    x[4 * i + (i + 3) % 4]);
    }
  }

  template <class W>
  NESCIO_INLINE static void quarter_round(W& y0, W& y1, W& y2, W& y3) {
    y1 ^= rotate_left<Word, 7>(y0 + y3);
    y2 ^= rotate_left<Word, 9>(y1 + y0);
    y3 ^= rotate_left<Word, 13>(y2 + y1);
    y0 ^= rotate_left<Word, 18>(y3 + y2);
  }
};

}  // namespace nescio::prg
