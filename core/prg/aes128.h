#pragma once

// The generator `aes128`: AES-128 under one fixed, public key, as a permutation pi, in the
// Matyas-Meyer-Oseas form with the linear orthomorphism sigma(hi || lo) = (hi ^ lo) || hi
// (Guo, Katz, Wang and Yu 2020, section 7.3):
//
//   F(x)    = pi(x) ^ x
//   G_j(s)  = F(sigma(s) ^ j)          j = 0, 1          the children
//   H_j(s)  = F(sigma(s) ^ (2 + j))    j = 0, 1, 2, 3    the leaf
//
// where a small number is the block with that lowest byte. The key is public. The assumption
// is that AES under a fixed key behaves as a random permutation.

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

/// Expands a public key. Not constant time; Nescio uses AES with public keys only.
RoundKeys variable_time_expand_key(Block key);

/// Returns the round keys of the fixed key, the ASCII bytes "Nescio fixed key".
const RoundKeys& fixed_round_keys();

inline constexpr std::uint64_t kFirstLeafTweak = 2;

/// The round constants Rcon (FIPS 197, section 5.2).
inline constexpr std::array<std::uint8_t, 10> kRoundConstants = {0x01, 0x02, 0x04, 0x08, 0x10,
                                                                 0x20, 0x40, 0x80, 0x1B, 0x36};

/// Each tier's functions. `encrypt` is AES itself; `count` encrypts the n little-endian numbers first,
/// first + 1, ... below 2^64; `expand_keys` expands the n public keys base ^ first,
/// base ^ (first + 1), ...; `expand` and `leaves` are those of prg::Generator.
NESCIO_TIERS(void encrypt(const RoundKeys& keys, const Block* in, std::size_t n, Block* out);
             void count(const RoundKeys& keys, std::uint64_t first, std::size_t n, Block* out);
             void expand_keys(Block base, std::uint64_t first, std::size_t n, RoundKeys* out);
             void expand(const Block* parents, std::size_t n, Corrections corrections, Block* out);
             void leaves(const Block* nodes, std::size_t n, Corrections corrections, Block* out);)

/// AES itself in one tier.
struct Cipher {
  void (*encrypt)(const RoundKeys& keys, const Block* in, std::size_t n, Block* out);
  void (*count)(const RoundKeys& keys, std::uint64_t first, std::size_t n, Block* out);
  void (*expand_keys)(Block base, std::uint64_t first, std::size_t n, RoundKeys* out);
};

/// Returns the code of `tier`.
Cipher cipher_of(Tier tier);

}  // namespace nescio::prg::aes128
