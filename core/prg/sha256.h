#pragma once

// The generator `sha256`: SHA-256 (FIPS 180-4) of the node and one more byte,
//
//   G(s) = SHA-256(s || 0)                        the two children
//   H(s) = SHA-256(s || 1) || SHA-256(s || 2)     the leaf
//
// All messages have 17 bytes. Each fits one block of the compression function, none is a prefix of
// another (which excludes length extension), and the last byte separates them. The assumption is that
// SHA-256, keyed by the first 16 bytes of a message of this length, is a pseudorandom function.

#include "hash/sha256.h"

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
  using Hash = hash::Sha256;

  /// The 8 words of SHA-256(s || tweak), little-endian like the node's.
  template <class W>
  NESCIO_INLINE static void hash(const W* node, Word tweak, W* out) {
    constexpr Word kMessageBits = 17 * 8;
    W message[16]{};
    NESCIO_UNROLL
    for (int w = 0; w < 4; ++w) message[w] = Hash::swap_bytes(node[w]);
    message[4] = broadcast<W>(tweak << 24 | Word{0x800000});  // padding begins with a 1
    message[15] = broadcast<W>(kMessageBits);
    Hash::start(out);
    Hash::compress(message, out);
    NESCIO_UNROLL
    for (int w = 0; w < 8; ++w) out[w] = Hash::swap_bytes(out[w]);
  }
};

}  // namespace nescio::prg
