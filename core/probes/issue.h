#pragma once

// The rate at which a core executes the instructions of an answer's arithmetic, from loops of nothing
// else: no loads, no stores, independent registers. What a kernel takes beyond it is the kernel's.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/tier.h"

namespace nescio::probes {

/// An instruction, or the short series of them that a generator repeats.
enum class Instruction : std::uint8_t {
  bit,    ///< products of bits: GF2P8AFFINEQB; with AVX2, PSHUFB
  u8,     ///< products of bytes: VPDPBUSD; with AVX2, VPMULLW
  u32,    ///< products of words: VPMULLD
  u64,    ///< VPMULLQ, with AVX-512 only
  aes,    ///< a round of AES: VAESENC
  words,  ///< an addition, an XOR and a rotation of 32-bit words
};

/// Returns the instruction with that name. Throws Error(argument) if it does not exist.
Instruction parse_instruction(std::string_view name);

/// An instruction's registers, and the seconds of one execution on one core.
struct Issue {
  std::size_t bytes;  ///< of a register; 0 if the tier has no such instruction
  double seconds;     ///< for `words`, of all three
};

/// Measures an instruction in the registers of a tier.
Issue measure_issue(Instruction instruction, Tier tier);

/// Executes an instruction `rounds` times on kChains registers; `bytes` is the size of a register.
struct Loop {
  std::size_t bytes = 0;
  void (*run)(std::size_t rounds) = nullptr;
};
inline constexpr std::size_t kChains = 12;

NESCIO_TIERS(Loop issue_loop(Instruction instruction);)

}  // namespace nescio::probes
