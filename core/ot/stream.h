#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.h"
#include "prg/aes128.h"

namespace nescio::ot {

/// Expands a public key of 16 bytes.
prg::aes128::RoundKeys public_round_keys(const std::uint8_t key[16]);

/// The AES-CTR stream under a public key as little-endian 32-bit words: word w is word w % 4 of
/// block w / 4, and block c is the encryption of the little-endian number c.
class WordStream {
 public:
  WordStream(const std::uint8_t key[16], Tier tier);

  /// Writes words first_word, first_word + 1, ...
  void words(std::uint64_t first_word, std::size_t count, std::uint32_t* out) const;

 private:
  prg::aes128::RoundKeys keys_;
  void (*encrypt_counters_)(const prg::aes128::RoundKeys&, std::uint64_t, std::size_t, Block*);
};

}  // namespace nescio::ot
