#pragma once

// The arithmetic of Ferret's consistency check (Yang, Weng, Lan, Zhang, Wang, CCS 2020, figure 9):
// random linear combinations of leaves in GF(2^128). Bit i of a block is the coefficient of X^i,
// modulo X^128 + X^7 + X^2 + X + 1. Leaves are arranged in rows of 512 and have the coefficients
//
//   chi[i] = AES(k) * AES(2^64 + j)      i = 512 j + k < 2^73, AES under a public seed
//
// so that a leaf costs a multiplication and no AES call. For any fixed nonzero vector and any fixed
// value, the sum equals that value with probability at most 2^-127: a nonzero row sums to zero
// under the first factors with probability 2^-128; otherwise the random second factor of that row
// determines the sum. Time and addresses depend on sizes only.

#include <cstdint>
#include <span>

#include "base/block.h"
#include "base/thread_pool.h"
#include "base/tier.h"

namespace nescio::ot {

inline constexpr std::size_t kChiRow = 512;

/// The sum of chi[i] * leaves[i].
Block chi_sum(std::span<const Block> leaves, const std::uint8_t chi_seed[16], ThreadPool& pool,
              Tier tier);

/// out[i] = chi[positions[i]].
void chi_at(std::span<const std::uint64_t> positions, const std::uint8_t chi_seed[16], Block* out,
            Tier tier);

/// The sum of blocks[i] * X^i, i < 128.
Block pack_bits(const Block* blocks);

/// The product of two field elements.
Block multiply(Block a, Block b, Tier tier);

/// A product of two blocks as polynomials, of degree below 255, not reduced.
struct Product {
  Block low, high;
};

struct CheckKernels {
  Product (*multiply)(Block a, Block b);

  /// The sum of factors[i] * leaves[i], i < n.
  Product (*sum_products)(const Block* factors, const Block* leaves, std::size_t n);
};

NESCIO_TIERS(extern const CheckKernels kCheckKernels;)

}  // namespace nescio::ot
