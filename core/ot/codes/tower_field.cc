#include "ot/codes/tower_field.h"

#include <optional>

namespace nescio::ot {
namespace {

std::uint32_t multiply_gf256(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (; b != 0; b >>= 1, a = (a << 1) ^ ((a >> 7) * 0x11B)) {
    if (b & 1) product ^= a;
  }
  return product;
}

/// The product in the subfield of 2^bits elements, for 8, 16 or 32 bits. The generator w over the
/// next smaller field satisfies w^2 = w + c.
std::uint32_t multiply(unsigned bits, std::uint32_t a, std::uint32_t b) {
  if (bits == 8) return multiply_gf256(a, b);
  const unsigned half = bits / 2;
  const std::uint32_t mask = (1u << half) - 1, c = half == 8 ? kB7 : kB15;
  const std::uint32_t high = multiply(half, a >> half, b >> half);
  const std::uint32_t low = multiply(half, a & mask, b & mask) ^ multiply(half, high, c);
  const std::uint32_t middle =
      multiply(half, a & mask, b >> half) ^ multiply(half, a >> half, b & mask);
  return low | (middle ^ high) << half;
}

/// The smallest y of a subfield with y^2 + y = b, if one exists. With y = y0 + y1 w,
/// y^2 + y = (y0^2 + y0 + c y1^2) + (y1^2 + y1) w.
std::optional<std::uint32_t> solve(unsigned bits, std::uint32_t b) {
  if (bits == 8) {
    for (std::uint32_t y = 0; y < 256; ++y) {
      if ((multiply_gf256(y, y) ^ y) == b) return y;
    }
    return std::nullopt;
  }
  const unsigned half = bits / 2;
  const std::uint32_t mask = (1u << half) - 1, c = half == 8 ? kB7 : kB15;
  const auto root = solve(half, b >> half);
  if (!root) return std::nullopt;
  for (std::uint32_t y1 : {*root, *root ^ 1}) {
    const std::uint32_t square = multiply(half, y1, y1);
    const auto y0 = solve(half, (b & mask) ^ multiply(half, c, square));
    if (y0) return *y0 | y1 << half;
  }
  return std::nullopt;
}

}  // namespace

Multiplier multiplier_of(std::uint32_t t) {
  std::uint32_t k[4] = {};
  for (unsigned from = 0; from < 4; ++from) {
    const std::uint32_t column = multiply(32, t, 1u << (8 * from));
    for (unsigned to = 0; to < 4; ++to) {
      k[from ^ to] |= ((column >> (8 * to)) & 0xFF) << (8 * to);
    }
  }
  return {k[0] | std::uint64_t{k[1]} << 32, k[2] | std::uint64_t{k[3]} << 32};
}

const CantorBasis& cantor_basis() {
  static const CantorBasis basis = [] {
    CantorBasis b{1};
    for (unsigned i = 1; i < b.size(); ++i) {
      b[i] = solve(i < 8 ? 8 : i < 16 ? 16 : 32, b[i - 1]).value();
    }
    return b;
  }();
  return basis;
}

}  // namespace nescio::ot
