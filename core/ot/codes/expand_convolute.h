#pragma once

// Expand-convolute codes for dual LPN: Raghuraman, Rindal and Tanguy, "Expand-Convolute Codes for
// Pseudorandom Correlation Generators from LPN", CRYPTO 2023. Systematic, of rate 1/2.
//
// The code is public; the blocks that it encodes are secret. Time and addresses depend only on the
// seed of the code and on sizes.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/block.h"
#include "base/thread_pool.h"
#include "base/tier.h"

namespace nescio::ot {

/// Each block is added to the block kAccumulatorSize after it, and to those in between that its
/// mask selects.
inline constexpr std::size_t kAccumulatorSize = 25;
inline constexpr std::size_t kMinOutputs = 64;
/// Weight of a row of the expander: one block of each of so many parts of its input.
inline constexpr unsigned kExpanderWeight = 7;

/// Compresses the 2n blocks of `noise` to n blocks. The first out.size() of them are written to
/// `out`, which must not overlap `noise`, the others to their positions in the first half of
/// `noise`. The rest of `noise` is overwritten. The result does not depend on the number of
/// threads. Throws Error(argument) for an odd number of blocks, for fewer than kMinOutputs or
/// more than 2^32 outputs, and if `out` has more than n blocks.
void encode_expand_convolute(std::span<Block> noise, const std::uint8_t code_seed[16],
                             ThreadPool& pool, Tier tier, std::span<Block> out = {});

/// Blocks, and masks, before a run that its convolution reads: kAccumulatorSize rounded up.
inline constexpr std::size_t kHistory = 32;

/// Convolves a run of blocks, y[0..count-1]. before[0..kHistory-1] are the results of the blocks
/// before it. The 24 low bits of masks[i] are the mask of y[i]; masks start at masks[-kHistory].
NESCIO_TIERS(void convolve(const std::uint32_t* masks, const Block* before, Block* y,
                           std::size_t count);)

}  // namespace nescio::ot
