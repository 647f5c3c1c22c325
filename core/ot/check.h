#pragma once

// What the consistency check of Ferret computes (Yang, Weng, Lan, Zhang, Wang, CCS 2020, figure 9):
// random linear combinations of leaves in GF(2^128). Bit i of a block is the coefficient of X^i,
// modulo X^128 + X^7 + X^2 + X + 1. The coefficient chi[i] is block i of the AES-CTR stream under a
// public seed. Time and addresses depend on sizes only.

#include <cstdint>
#include <span>

#include "base/block.h"
#include "base/cpu.h"
#include "base/thread_pool.h"
#include "prg/aes128.h"

namespace nescio::ot {

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

  /// Adds AES(first + i) * leaves[i], i < n, to the sum; the round keys are the seed's.
  void (*add_products)(const prg::aes128::RoundKeys& keys, std::uint64_t first, const Block* leaves,
                       std::size_t n, Product* sum);
};

namespace portable {
extern const CheckKernels kCheckKernels;
}
namespace avx2 {
extern const CheckKernels kCheckKernels;
}
namespace avx512 {
extern const CheckKernels kCheckKernels;
}

}  // namespace nescio::ot
