#pragma once

// The generators of each tier. All but aes128 are built from a core, which computes on words W
// (base/word.h): those of one node, or of several nodes at once. Tiers differ only in the number of
// nodes, and share the body prg/cores_impl.h. A core is a struct with
//
//   Word        std::uint32_t or std::uint64_t
//   kRadixBits  log2 of the arity
//   children    computes the words of a node's children from its words, little-endian
//   leaf        computes the words of a node's 64-byte leaf
//
// It accesses no memory but its arguments. Its loops have fixed bounds and are unrolled, so arrays are
// registers.

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
