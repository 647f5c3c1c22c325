#pragma once

// The public randomness of codes: AES-128 in counter mode as words of 32 bits.

#include <cstddef>
#include <cstdint>

#include "base/cpu.h"
#include "prg/aes128.h"

namespace nescio::ot {

/// The words of AES-128-CTR under a public key: word w is number w % 4, little-endian, of the block
/// that encrypts w / 4 as a little-endian number of 128 bits.
class WordStream {
 public:
  WordStream(const std::uint8_t key[16], Tier tier);

  /// Writes words first_word .. first_word + count - 1.
  void words(std::uint64_t first_word, std::size_t count, std::uint32_t* out) const;

 private:
  prg::aes128::RoundKeys keys_;
  Tier tier_;
};

}  // namespace nescio::ot
