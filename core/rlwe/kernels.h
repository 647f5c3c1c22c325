#pragma once

// Arithmetic on rows of N residues modulo p_i (rlwe/ring.h). Every residue that comes in or goes out is
// below p_i. The time of every function is independent of the values, in every tier.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/tier.h"
#include "rlwe/ring.h"

namespace nescio::rlwe {

/// Two rows to multiply value by value; b has the factor 2^32 (Montgomery's form).
struct Term {
  const std::uint32_t* a;
  const std::uint32_t* b;
};

struct Kernels {
  /// The NTT in place, and its inverse.
  void (*forward)(unsigned i, std::uint32_t* row);
  void (*inverse)(unsigned i, std::uint32_t* row);

  /// Writes the sum of the terms' products, without the factor.
  void (*multiply)(unsigned i, std::span<const Term> terms, std::uint32_t* out);

  /// Multiplies by 2^32, in place.
  void (*to_montgomery)(unsigned i, std::uint32_t* row);

  /// out = out - row.
  void (*subtract)(unsigned i, const std::uint32_t* row, std::uint32_t* out);

  /// out = out + x, and out = x, for |x| < p.
  void (*add_signed)(unsigned i, const std::int32_t* x, std::uint32_t* out);
  void (*set_signed)(unsigned i, const std::int32_t* x, std::uint32_t* out);

  /// out = round(m q / 2^32).
  void (*scale_up)(unsigned i, const std::uint32_t* m, std::uint32_t* out);

  /// out = round(2^32 c / q) modulo 2^32, or with 40 instead of 32, for the numbers c whose residues
  /// are `rows`.
  void (*scale_to_32)(const std::uint32_t* const* rows, std::uint64_t* out);
  void (*scale_to_40)(const std::uint32_t* const* rows, std::uint64_t* out);

  /// Writes the numbers of least magnitude with these residues, modulo 2^64.
  void (*center)(const std::uint32_t* const* rows, std::uint64_t* out);

  /// out = x, for x below 2^40.
  void (*reduce)(unsigned i, const std::uint64_t* x, std::uint32_t* out);

  /// floor(3 x / 2^64) - 1, and the ones in the lowest kErrorCoins bits minus half as many.
  void (*ternary)(const std::uint64_t* words, std::int32_t* out);
  void (*errors)(const std::uint64_t* words, std::int32_t* out);
};

inline constexpr unsigned kErrorCoins = 42;

const Kernels& kernels_of(Tier tier);

NESCIO_TIERS(extern const Kernels kKernels;)

}  // namespace nescio::rlwe
