#pragma once

// The generators of each tier. All but aes128 are built from a core (prg/word.h), which computes on the
// words of several nodes at once. Tiers differ only in the number of nodes, and share the body
// prg/cores_impl.h.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/tier.h"
#include "prg/prg.h"

namespace nescio::prg {

inline constexpr std::size_t kGeneratorCount = 8;

NESCIO_TIERS(extern const Generator kGenerators[kGeneratorCount];)

/// The ChaCha20 block function itself, for its known answers (RFC 8439, section 2.3.2).
std::array<std::uint32_t, 16> chacha20_block(const std::array<std::uint32_t, 16>& state);

}  // namespace nescio::prg
