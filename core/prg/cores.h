#pragma once

// The generators that are made of a core (prg/word.h), which computes on the words of many nodes at
// once: their tiers differ only in how many, and share one body, prg/cores_impl.h.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/block.h"
#include "prg/corrections.h"

namespace nescio::prg {

/// One vocabulary a generator and tier: prg::Generator's functions.
#define NESCIO_CORE_TIER(name, tier)                                                     \
  namespace name::tier {                                                                 \
  void expand(const Block* parents, std::size_t n, Corrections corrections, Block* out); \
  void leaves(const Block* nodes, std::size_t n, Corrections corrections, Block* out);   \
  }
#define NESCIO_CORE_TIERS(name)    \
  NESCIO_CORE_TIER(name, portable) \
  NESCIO_CORE_TIER(name, avx2)     \
  NESCIO_CORE_TIER(name, avx512)

NESCIO_CORE_TIERS(chacha20)
NESCIO_CORE_TIERS(chacha12)
NESCIO_CORE_TIERS(chacha8)
NESCIO_CORE_TIERS(salsa20)
NESCIO_CORE_TIERS(sha256)
NESCIO_CORE_TIERS(insecure_siphash)
NESCIO_CORE_TIERS(insecure_highwayhash)

#undef NESCIO_CORE_TIERS
#undef NESCIO_CORE_TIER

/// The ChaCha20 block function itself, for its known answers (RFC 8439, section 2.3.2).
std::array<std::uint32_t, 16> chacha20_block(const std::array<std::uint32_t, 16>& state);

}  // namespace nescio::prg
