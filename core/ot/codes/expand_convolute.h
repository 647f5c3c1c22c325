#pragma once

// Expand-convolute codes for dual LPN: Raghuraman, Rindal and Tanguy, "Expand-Convolute Codes for
// Pseudorandom Correlation Generators from LPN", CRYPTO 2023. Systematic, of rate 1/2.
//
// The code is public; the blocks it is applied to are secret. Time and addresses depend on the
// code's seed and on sizes only.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/block.h"
#include "base/thread_pool.h"
#include "base/tier.h"

namespace nescio::ot {

/// A block is added to the block `kDistance` after it, and to some of those between.
inline constexpr std::size_t kDistance = 25;
inline constexpr std::size_t kFewestOutputs = 64;

/// Compresses the 2n blocks of `noise` into its first n, or, the first of them, into `out`, which
/// lies elsewhere; what else stands in the noise is spoilt. The same for any number of threads.
/// Throws Error(argument) for an odd number of blocks, for less than kFewestOutputs or more than 2^32
/// outputs, and if `out` has room for more than n.
void encode_expand_convolute(std::span<Block> noise, const std::uint8_t code_seed[16],
                             ThreadPool& pool, Tier tier, std::span<Block> out = {});

/// Blocks (and their masks) that the convolution of a run looks back to.
inline constexpr std::size_t kLookBack = 32;

/// Convolves a run of blocks, y[0..count-1]. before[0..kLookBack-1] are the blocks before it, done;
/// masks[i] is the mask of y[i] in its 24 low bits, from masks[-kLookBack] on.
NESCIO_TIERS(void convolve(const std::uint32_t* masks, const Block* before, Block* y,
                           std::size_t count);)

}  // namespace nescio::ot
