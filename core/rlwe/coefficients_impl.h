// The functions of kernels*.cc on coefficients, as loops that a compiler turns into vector code. Each
// tier's file includes this file once and compiles it with the tier's flags. Everything here is private
// to the including file.

#include <cstddef>
#include <cstdint>

#include "base/block.h"
#include "rlwe/kernels.h"

namespace nescio::rlwe {
namespace {

/// x if x < bound, else x - bound; for x < 2 bound.
NESCIO_INLINE std::uint32_t subtract_once(std::uint32_t x, std::uint32_t bound) {
  const std::uint32_t less = x - bound;
  return less < x ? less : x;
}

/// x w modulo p for any word x.
NESCIO_INLINE std::uint32_t multiply_by(std::uint32_t x, Factor w, std::uint32_t p) {
  const auto estimate = static_cast<std::uint32_t>(std::uint64_t{x} * w.quotient >> 32);
  return subtract_once(x * w.value - estimate * p, p);
}

/// x modulo p, for |x| < p.
NESCIO_INLINE std::uint32_t residue(std::int32_t x, std::uint32_t p) {
  return static_cast<std::uint32_t>(x) + (p & static_cast<std::uint32_t>(x >> 31));
}

void to_montgomery(unsigned i, std::uint32_t* row) {
  const Factor w = kPrimes[i].to_montgomery;
  const std::uint32_t p = kPrimes[i].p;
  for (std::size_t k = 0; k < kDegree; ++k) row[k] = multiply_by(row[k], w, p);
}

void subtract(unsigned i, const std::uint32_t* row, std::uint32_t* out) {
  const std::uint32_t p = kPrimes[i].p;
  for (std::size_t k = 0; k < kDegree; ++k) out[k] = subtract_once(out[k] + (p - row[k]), p);
}

void add_signed(unsigned i, const std::int32_t* x, std::uint32_t* out) {
  const std::uint32_t p = kPrimes[i].p;
  for (std::size_t k = 0; k < kDegree; ++k) out[k] = subtract_once(out[k] + residue(x[k], p), p);
}

void set_signed(unsigned i, const std::int32_t* x, std::uint32_t* out) {
  const std::uint32_t p = kPrimes[i].p;
  for (std::size_t k = 0; k < kDegree; ++k) out[k] = residue(x[k], p);
}

// Let r be the remainder of q m modulo 2^32 in [-2^31, 2^31). Then round(q m / 2^32) = (q m - r) / 2^32,
// which is -r / 2^32 modulo p. With a = r + 2^31, an unsigned word, it is (2^31 - a) / 2^32.
void scale_up(unsigned i, const std::uint32_t* m, std::uint32_t* out) {
  const std::uint32_t p = kPrimes[i].p, modulus = static_cast<std::uint32_t>(kModulus);
  const Factor inverse = kPrimes[i].from_montgomery;
  constexpr std::uint32_t half = std::uint32_t{1} << 31;
  const std::uint32_t offset = multiply_by(half, inverse, p) + p;
  for (std::size_t k = 0; k < kDegree; ++k) {
    out[k] = subtract_once(offset - multiply_by(modulus * m[k] + half, inverse, p), p);
  }
}

/// The number c w modulo q of least magnitude, where c has the residues a and b.
NESCIO_INLINE std::uint64_t join(std::uint32_t a, std::uint32_t b, const JoinFactors& w) {
  constexpr std::uint32_t p0 = kPrimes[0].p, p1 = kPrimes[1].p;
  const std::uint64_t sum = std::uint64_t{multiply_by(a, w.first, p0)} * p1 +
                            std::uint64_t{multiply_by(b, w.second, p1)} * p0;  // below 2 q
  // Numbers from q / 2 to 3 q / 2 lose q, greater ones 2 q.
  constexpr std::uint64_t half = kModulus / 2;
  const std::uint64_t once = (half - sum) >> 63, twice = (half + kModulus - sum) >> 63;
  return sum - (kModulus & (0 - once)) - (kModulus & (0 - twice));
}

// With r = 2^bits c modulo q, of least magnitude, round(2^bits c / q) = (2^bits c - r) / q, which is
// -r / q modulo 2^bits.
template <unsigned bits>
void scale_down(const std::uint32_t* const* rows, std::uint64_t* out) {
  constexpr JoinFactors w = join_factors(std::uint64_t{1} << bits);
  std::uint64_t inverse = 1;
  for (int step = 0; step < 6; ++step) inverse *= 2 - kModulus * inverse;
  const std::uint64_t negative = 0 - inverse, mask = (std::uint64_t{1} << bits) - 1;
  const std::uint32_t *a = rows[0], *b = rows[1];
  for (std::size_t k = 0; k < kDegree; ++k) out[k] = join(a[k], b[k], w) * negative & mask;
}

void center(const std::uint32_t* const* rows, std::uint64_t* out) {
  constexpr JoinFactors w = join_factors(1);
  const std::uint32_t *a = rows[0], *b = rows[1];
  for (std::size_t k = 0; k < kDegree; ++k) out[k] = join(a[k], b[k], w);
}

constexpr Factor kTwoTo20[2] = {factor(1 << 20, kPrimes[0].p), factor(1 << 20, kPrimes[1].p)};

void reduce(unsigned i, const std::uint64_t* x, std::uint32_t* out) {
  constexpr unsigned bits = 20;
  const std::uint32_t p = kPrimes[i].p;
  const Factor w = kTwoTo20[i];
  for (std::size_t k = 0; k < kDegree; ++k) {
    const auto upper = static_cast<std::uint32_t>(x[k] >> bits);
    const auto lower = static_cast<std::uint32_t>(x[k]) & ((std::uint32_t{1} << bits) - 1);
    out[k] = subtract_once(multiply_by(upper, w, p) + lower, p);
  }
}

void ternary(const std::uint64_t* words, std::int32_t* out) {
  for (std::size_t k = 0; k < kDegree; ++k) {
    const std::uint64_t upper = words[k] >> 32, lower = words[k] & 0xFFFFFFFF;
    out[k] = static_cast<std::int32_t>((3 * upper + (3 * lower >> 32)) >> 32) - 1;
  }
}

/// Counts ones without a table and without an instruction that some processors lack.
void errors(const std::uint64_t* words, std::int32_t* out) {
  constexpr std::uint64_t k1 = 0x5555555555555555, k2 = 0x3333333333333333, k4 = 0x0F0F0F0F0F0F0F0F;
  constexpr std::uint64_t coins = (std::uint64_t{1} << kErrorCoins) - 1;
  for (std::size_t k = 0; k < kDegree; ++k) {
    std::uint64_t x = words[k] & coins;
    x -= x >> 1 & k1;
    x = (x & k2) + (x >> 2 & k2);
    x = (x + (x >> 4)) & k4;
    x += x >> 32;
    x += x >> 16;
    x += x >> 8;
    out[k] = static_cast<std::int32_t>(x & 0xFF) - static_cast<std::int32_t>(kErrorCoins / 2);
  }
}

}  // namespace

/// Defines the kernels of the tier that is being compiled.
#define NESCIO_DEFINE_RLWE_KERNELS                                                                \
  constexpr Kernels kKernels = {forward,    inverse,    multiply, to_montgomery,  subtract,       \
                                add_signed, set_signed, scale_up, scale_down<32>, scale_down<40>, \
                                center,     reduce,     ternary,  errors};

}  // namespace nescio::rlwe
