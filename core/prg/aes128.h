#pragma once

// The generator `aes128`: AES-128 under one fixed, public key, as a permutation pi, in the
// Matyas-Meyer-Oseas form with the linear orthomorphism sigma(hi || lo) = (hi ^ lo) || hi
// (Guo, Katz, Wang and Yu 2020, section 7.3):
//
//   F(x)    = pi(x) ^ x
//   G_j(s)  = F(sigma(s) ^ j)          j = 0, 1          the children
//   H_j(s)  = F(sigma(s) ^ (2 + j))    j = 0, 1, 2, 3    the leaf
//
// where a small number is a block whose lowest byte it is. The key is public: what is assumed is
// that AES under a fixed key behaves as a random permutation.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/block.h"
#include "base/tier.h"
#include "prg/corrections.h"

namespace nescio::prg::aes128 {

/// The eleven round keys of AES-128 (FIPS 197, section 5.2).
struct RoundKeys {
  std::array<Block, 11> key;
};

/// Key expansion, of which the portable tier's is not constant time: for public keys, which is all that
/// Nescio uses AES with.
RoundKeys variable_time_expand_key(Block key);

/// The round keys of the fixed key, the ASCII bytes "Nescio fixed key".
const RoundKeys& fixed_round_keys();

inline constexpr std::uint64_t kFirstLeafTweak = 2;

/// What the first byte of each round key's words is XORed with (FIPS 197, section 5.2).
inline constexpr std::array<std::uint8_t, 10> kRoundConstants = {0x01, 0x02, 0x04, 0x08, 0x10,
                                                                 0x20, 0x40, 0x80, 0x1B, 0x36};

/// One vocabulary a tier. `encrypt` is AES itself; `count` encrypts the numbers first, first + 1, ...
/// below 2^64, n of them, little-endian; `expand_keys` expands the public keys base ^ first,
/// base ^ (first + 1), ..., n of them; the other two are prg::Generator's.
NESCIO_TIERS(void encrypt(const RoundKeys& keys, const Block* in, std::size_t n, Block* out);
             void count(const RoundKeys& keys, std::uint64_t first, std::size_t n, Block* out);
             void expand_keys(Block base, std::uint64_t first, std::size_t n, RoundKeys* out);
             void expand(const Block* parents, std::size_t n, Corrections corrections, Block* out);
             void leaves(const Block* nodes, std::size_t n, Corrections corrections, Block* out);)

/// What a tier has of AES itself.
struct Cipher {
  void (*encrypt)(const RoundKeys& keys, const Block* in, std::size_t n, Block* out);
  void (*count)(const RoundKeys& keys, std::uint64_t first, std::size_t n, Block* out);
  void (*expand_keys)(Block base, std::uint64_t first, std::size_t n, RoundKeys* out);
};

/// The code of `tier`, or of the next narrower tier that has it.
Cipher cipher_of(Tier tier);

}  // namespace nescio::prg::aes128
