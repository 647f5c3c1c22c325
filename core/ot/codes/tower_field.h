#pragma once

// The field F = GF(2^32) of the additive FFT: its public constants. Not constant time.
//
// A tower, so that small subfields have few bytes: GF(2^8) with x^8 + x^4 + x^3 + x + 1, as AES and
// GF2P8MULB have it; GF(2^16) with u^2 + u = b_7; GF(2^32) with v^2 + v = b_15. Byte 2k + l of an
// element is the coefficient of v^k u^l. The Cantor basis b_0 = 1, b_i^2 + b_i = b_{i-1} spans
// GF(2^8) with its first eight and GF(2^16) with its first sixteen.

#include <array>
#include <cstdint>

#include "base/block.h"

namespace nescio::ot {

inline constexpr std::uint32_t kB7 = 0x84;
inline constexpr std::uint32_t kB15 = 0x8494;

/// Multiplication by t is x -> sum_s K_s . (x with byte i ^ s of each element at byte i), where .
/// multiplies in GF(2^8), byte by byte. A Multiplier has K_s in its bytes 4s .. 4s+3. It is linear
/// in t; K_1 is zero for t in GF(2^8), K_2 and K_3 in GF(2^16).
using Multiplier = Block;
Multiplier multiplier_of(std::uint32_t t);

using CantorBasis = std::array<std::uint32_t, 32>;
const CantorBasis& cantor_basis();

}  // namespace nescio::ot
