#pragma once

// The hash that makes correlated transfers random ones: tweakable circular correlation robust, from
// a permutation (Guo, Katz, Wang, Yu, IEEE S&P 2020, section 7.4),
//
//   h(x, i) = pi(pi(x) ^ i) ^ pi(x)         pi: prg/aes128.h

#include <cstdint>
#include <span>

#include "base/block.h"
#include "base/cpu.h"
#include "base/thread_pool.h"

namespace nescio::ot {

/// out[j] = h(blocks[j] ^ delta, i) where i has first_index + j in its lower half and the tag in its
/// upper half.
void hash_blocks(std::span<const Block> blocks, std::uint64_t first_index, std::uint64_t tag,
                 Block delta, Block* out, ThreadPool& pool, Tier tier);

using HashBlocks = void (*)(const Block* blocks, std::size_t n, Block first_tweak, Block delta,
                            Block* out);

namespace portable {
void hash_some(const Block* blocks, std::size_t n, Block first_tweak, Block delta, Block* out);
}
namespace avx2 {
void hash_some(const Block* blocks, std::size_t n, Block first_tweak, Block delta, Block* out);
}
namespace avx512 {
void hash_some(const Block* blocks, std::size_t n, Block first_tweak, Block delta, Block* out);
}

}  // namespace nescio::ot
