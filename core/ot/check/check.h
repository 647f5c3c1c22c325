#pragma once

// What the consistency check of Ferret computes (Yang, Weng, Lan, Zhang, Wang, CCS 2020, figure 9):
// random linear combinations of leaves in GF(2^128). Bit i of a block is the coefficient of X^i,
// modulo X^128 + X^7 + X^2 + X + 1. Leaves stand in rows of 512, and have the coefficients
//
//   chi[i] = AES(k) * AES(2^64 + j)      i = 512 j + k < 2^73, AES under a public seed
//
// so that a leaf costs a product and no AES. For a vector that is not zero, the sum takes any value
// given before with a probability of at most 2^-127: a row that is not zero adds up to zero under the
// first factors for one of 2^128, and else the second factor of that row decides. Time and addresses
// depend on sizes only.

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

/// A polynomial of degree below 255, not yet reduced.
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
