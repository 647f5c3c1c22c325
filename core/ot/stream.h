#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.h"
#include "prg/aes128.h"

namespace nescio::ot {

/// AES-128 under any key, in the code of `tier` or of the next narrower tier that has it.
using Encrypt = void (*)(const prg::aes128::RoundKeys& keys, const Block* in, std::size_t n,
                         Block* out);
Encrypt encryption(Tier tier);

/// The round keys for sixteen public bytes.
prg::aes128::RoundKeys public_round_keys(const std::uint8_t key[16]);

/// The AES-CTR stream under a public key as little-endian 32-bit words: word w is number w % 4 of
/// block w / 4, and block c the encryption of c, little-endian.
class WordStream {
 public:
  WordStream(const std::uint8_t key[16], Tier tier);

  /// Writes words first_word, first_word + 1, ...
  void words(std::uint64_t first_word, std::size_t count, std::uint32_t* out) const;

 private:
  prg::aes128::RoundKeys keys_;
  Encrypt encrypt_;
};

}  // namespace nescio::ot
