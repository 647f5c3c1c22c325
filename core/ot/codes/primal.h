#pragma once

// The primal LPN encoder of Ferret (Yang, Weng, Lan, Zhang, Wang, CCS 2020): a public matrix with
// ten ones per row, times the short secret (k blocks), plus noise. The columns of the ones of row i
// are given by words 10 i to 10 i + 9 of the AES-CTR stream under the seed of the code: the column
// is word & (k - 1) if k is a power of two, else (word * k) >> 32.

#include <cstdint>
#include <span>

#include "base/block.h"
#include "base/thread_pool.h"
#include "base/tier.h"

namespace nescio::ot {

inline constexpr std::size_t kRowWeight = 10;
inline constexpr std::uint64_t kMaxSeeds = std::uint64_t{1} << 31;

/// XORs the ten seeds of row first_row + i into noise[i]. Throws Error(argument) unless there are 1
/// to kMaxSeeds seeds. Addresses depend on the code only, which is public.
void encode_primal(std::span<Block> noise, std::span<const Block> seeds,
                   const std::uint8_t code_seed[16], std::uint64_t first_row, ThreadPool& pool,
                   Tier tier);

/// XORs the ten seeds of each row into its noise. Overwrites `words`, ten per row of the stream.
NESCIO_TIERS(void add_rows(std::uint32_t* words, const Block* seeds, std::uint64_t k,
                           std::size_t rows, Block* noise);)

}  // namespace nescio::ot
