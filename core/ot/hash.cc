#include "ot/hash.h"

#include <algorithm>
#include <array>

#include "prg/aes128.h"

namespace nescio::ot {
namespace {

HashBlocks hash_of(Tier tier) {
#if defined(NESCIO_X86_64)
  if (tier >= Tier::avx512) return avx512::hash_some;
  if (tier >= Tier::avx2) return avx2::hash_some;
#endif
  static_cast<void>(tier);
  return portable::hash_some;
}

}  // namespace

void hash_blocks(std::span<const Block> blocks, std::uint64_t first_index, std::uint64_t tag,
                 Block delta, Block* out, ThreadPool& pool, Tier tier) {
  constexpr std::size_t kTask = std::size_t{1} << 14;
  const HashBlocks hash = hash_of(tier);
  pool.run((blocks.size() + kTask - 1) / kTask, [&](std::size_t task, unsigned) {
    const std::size_t first = task * kTask, count = std::min(kTask, blocks.size() - first);
    hash(blocks.data() + first, count, {first_index + first, tag}, delta, out + first);
  });
}

namespace portable {

void hash_some(const Block* blocks, std::size_t n, Block first_tweak, Block delta, Block* out) {
  constexpr std::size_t kBlocks = 64;
  const auto& keys = prg::aes128::fixed_round_keys();
  for (std::size_t i = 0; i < n; i += kBlocks) {
    const std::size_t count = std::min(kBlocks, n - i);
    std::array<Block, kBlocks> inner, outer;
    for (std::size_t k = 0; k < count; ++k) outer[k] = blocks[i + k] ^ delta;
    prg::aes128::portable::encrypt(keys, outer.data(), count, inner.data());
    for (std::size_t k = 0; k < count; ++k) {
      outer[k] = inner[k] ^ Block { first_tweak.lo + i + k, first_tweak.hi };
    }
    prg::aes128::portable::encrypt(keys, outer.data(), count, outer.data());
    for (std::size_t k = 0; k < count; ++k) out[i + k] = outer[k] ^ inner[k];
  }
}

}  // namespace portable
}  // namespace nescio::ot
