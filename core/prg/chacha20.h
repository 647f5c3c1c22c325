#pragma once

// The generator `chacha20`: the ChaCha20 block function (RFC 8439, section 2.3) with the node as
// its 128-bit key, laid out as Bernstein's paper of 2008 says for keys of that size: the constants
// "expand 16-byte k", the key twice, a 64-bit counter, a 64-bit nonce of zero. Its 64 bytes are
// four blocks:
//
//   G(s) = ChaCha20(key = s, counter = 0)     the four children
//   H(s) = ChaCha20(key = s, counter = 1)     the leaf
//
// What is assumed is that ChaCha20 is a pseudorandom function of its key.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/block.h"
#include "prg/corrections.h"

namespace nescio::prg::chacha20 {

/// The 16 words that the block function starts from.
using State = std::array<std::uint32_t, 16>;

/// "expand 16-byte k" as four little-endian words.
inline constexpr std::uint32_t kConstants[4] = {0x61707865, 0x3120646e, 0x79622d36, 0x6b206574};
inline constexpr std::uint32_t kChildrenCounter = 0;
inline constexpr std::uint32_t kLeafCounter = 1;

/// The block function itself, for its known answers (RFC 8439, section 2.3.2).
State block_function(const State& input);

/// One vocabulary a tier: prg::Generator's functions.
#define NESCIO_CHACHA20_TIER(tier)                                                       \
  namespace tier {                                                                       \
  void expand(const Block* parents, std::size_t n, Corrections corrections, Block* out); \
  void leaves(const Block* nodes, std::size_t n, Corrections corrections, Block* out);   \
  }

NESCIO_CHACHA20_TIER(portable)
NESCIO_CHACHA20_TIER(avx2)
NESCIO_CHACHA20_TIER(avx512)

#undef NESCIO_CHACHA20_TIER

}  // namespace nescio::prg::chacha20
