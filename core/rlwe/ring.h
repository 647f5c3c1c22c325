#pragma once

// The ring R_q = Z_q[X]/(X^N + 1) with N = 4096 and q = p0 p1. A polynomial is two rows of N residues,
// modulo p0 and modulo p1. Rows are coefficients, or the values of the number-theoretic transform
// (NTT): value k is the polynomial at psi^(2 r(k) + 1), where r reverses the 12 bits of k.
//
// docs/rlwe-parameters.md explains the choice of the parameters.

#include <array>
#include <cstddef>
#include <cstdint>

namespace nescio::rlwe {

inline constexpr std::size_t kDegree = 4096;
inline constexpr unsigned kDegreeBits = 12;
inline constexpr unsigned kMessageBits = 32;

consteval std::uint32_t power(std::uint64_t base, std::uint64_t exponent, std::uint64_t p) {
  std::uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1, base = base * base % p) {
    if (exponent & 1) result = result * base % p;
  }
  return static_cast<std::uint32_t>(result);
}

/// A factor w modulo p with floor(2^32 w / p), for products of one multiplication more than an
/// integer product (Shoup's; Harvey, "Faster arithmetic for number-theoretic transforms", 2014).
struct Factor {
  std::uint32_t value;
  std::uint32_t quotient;
};

consteval Factor factor(std::uint64_t value, std::uint32_t p) {
  return {static_cast<std::uint32_t>(value % p), static_cast<std::uint32_t>((value % p << 32) / p)};
}

/// A prime p below 2^30 with p = 1 modulo 2 N, and what products modulo p need.
struct Prime {
  std::uint32_t p;
  std::uint32_t root;      ///< psi, a primitive root of unity of order 2 N
  std::uint32_t inverse;   ///< of p modulo 2^32
  Factor to_montgomery;    ///< 2^32
  Factor from_montgomery;  ///< 2^-32
  Factor degree_inverse;   ///< 1 / N
};

consteval Prime make_prime(std::uint32_t p) {
  std::uint32_t inverse = 1;
  for (int i = 0; i < 5; ++i) inverse *= 2 - p * inverse;
  const std::uint64_t word = (std::uint64_t{1} << 32) % p;
  return {p,
          power(3, (p - 1) / (2 * kDegree), p),
          inverse,
          factor(word, p),
          factor(power(word, p - 2, p), p),
          factor(power(kDegree, p - 2, p), p)};
}

/// The largest primes below 2^30 that are 1 modulo 2 N.
inline constexpr std::array<Prime, 2> kPrimes = {make_prime(1073692673), make_prime(1073668097)};
inline constexpr std::uint64_t kModulus = std::uint64_t{kPrimes[0].p} * kPrimes[1].p;

/// The factors w / p1 modulo p0 and w / p0 modulo p1 of the Chinese remainder theorem: a number modulo
/// q with the residues a and b, times w, is a first p1 + b second p0.
struct JoinFactors {
  Factor first, second;
};

consteval JoinFactors join_factors(std::uint64_t w) {
  const std::uint32_t p0 = kPrimes[0].p, p1 = kPrimes[1].p;
  return {factor(w % p0 * power(p1, p0 - 2, p0), p0), factor(w % p1 * power(p0, p1 - 2, p1), p1)};
}

static_assert(power(kPrimes[0].root, kDegree, kPrimes[0].p) == kPrimes[0].p - 1);
static_assert(power(kPrimes[1].root, kDegree, kPrimes[1].p) == kPrimes[1].p - 1);
static_assert(kPrimes[0].p * kPrimes[0].inverse == 1 && kPrimes[1].p * kPrimes[1].inverse == 1);

/// The factors of the NTT's butterflies: psi^r(k) at k, and its inverse. A tier may load sixteen
/// factors at any k.
struct Twiddles {
  static constexpr std::size_t kSize = kDegree + 16;
  alignas(64) std::array<std::uint32_t, kSize> forward, forward_quotients;
  alignas(64) std::array<std::uint32_t, kSize> inverse, inverse_quotients;
};

extern const std::array<Twiddles, 2> kTwiddles;

}  // namespace nescio::rlwe
