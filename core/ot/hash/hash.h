#pragma once

// The hash that turns correlated transfers into random ones. It is tweakable circular correlation
// robust, from a permutation (Guo, Katz, Wang, Yu, IEEE S&P 2020, section 7.4):
//
//   h(x, i) = pi(pi(x) ^ i) ^ pi(x)         pi: AES under the key of i's period, see ot/keys.h

#include <cstdint>
#include <span>

#include "base/block.h"
#include "base/thread_pool.h"
#include "base/tier.h"
#include "ot/keys.h"

namespace nescio::ot {

/// Sets out[j] to h(blocks[j] ^ delta, i), where the lower half of i is first_index + j and the
/// upper half is the tag. Keys are derived from `base`.
void hash_blocks(std::span<const Block> blocks, std::uint64_t first_index, std::uint64_t tag,
                 Block base, Block delta, Block* out, ThreadPool& pool, Tier tier);

NESCIO_TIERS(void hash_period(const RoundKeys& keys, const Block* blocks, std::size_t n,
                              Block first_tweak, Block delta, Block* out);)

}  // namespace nescio::ot
