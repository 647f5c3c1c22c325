#pragma once

// The hash that makes correlated transfers random ones: tweakable circular correlation robust, from
// a permutation (Guo, Katz, Wang, Yu, IEEE S&P 2020, section 7.4),
//
//   h(x, i) = pi(pi(x) ^ i) ^ pi(x)         pi: AES under the key of i's stretch, see ot/keys.h

#include <cstdint>
#include <span>

#include "base/block.h"
#include "base/thread_pool.h"
#include "base/tier.h"
#include "ot/keys.h"

namespace nescio::ot {

/// out[j] = h(blocks[j] ^ delta, i) where i has first_index + j in its lower half and the tag in its
/// upper half. Keys are made from `base`.
void hash_blocks(std::span<const Block> blocks, std::uint64_t first_index, std::uint64_t tag,
                 Block base, Block delta, Block* out, ThreadPool& pool, Tier tier);

NESCIO_TIERS(void hash_some(const RoundKeys& keys, const Block* blocks, std::size_t n,
                            Block first_tweak, Block delta, Block* out);)

}  // namespace nescio::ot
