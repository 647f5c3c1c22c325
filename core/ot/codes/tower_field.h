#pragma once

// Public constants of the field F = GF(2^32) of the additive FFT. Not constant time.
//
// F is a tower, so that elements of small subfields have few nonzero bytes: GF(2^8) modulo x^8 +
// x^4 + x^3 + x + 1, as in AES and GF2P8MULB; GF(2^16) with u^2 + u = b_7; GF(2^32) with v^2 + v =
// b_15. Byte 2k + l of an element is the coefficient of v^k u^l. The first eight elements of the
// Cantor basis b_0 = 1, b_i^2 + b_i = b_{i-1} span GF(2^8), the first sixteen GF(2^16).

#include <array>
#include <cstdint>

#include "base/block.h"

namespace nescio::ot {

inline constexpr std::uint32_t kB7 = 0x84;
inline constexpr std::uint32_t kB15 = 0x8494;

/// Multiplication by t is x -> sum_s K_s . (x with byte i ^ s of each element at byte i), where .
/// multiplies in GF(2^8), byte by byte. Bytes 4s to 4s + 3 of a Multiplier are K_s. It is linear in
/// t. K_1 to K_3 are zero for t in GF(2^8), K_2 and K_3 for t in GF(2^16).
using Multiplier = Block;
Multiplier multiplier_of(std::uint32_t t);

using CantorBasis = std::array<std::uint32_t, 32>;
const CantorBasis& cantor_basis();

}  // namespace nescio::ot
