#include "ot/trees/kernels.h"

#include <algorithm>
#include <array>

#include "prg/aes128.h"

namespace nescio::ot {

const TreeKernels& tree_kernels(Tier tier) { return NESCIO_PICK(tier, kTreeKernels); }

namespace portable {
namespace {

constexpr std::size_t kNodes = 64;  // per call of AES

constexpr Block sigma(Block s) { return {s.hi, s.hi ^ s.lo}; }

/// a where the mask is all ones, else b.
constexpr Block blend(Block mask, Block a, Block b) { return b ^ (mask & (a ^ b)); }

/// Stores the pair at its position if that is among n nodes, where nodes[0] has the number `first`.
void store_pair_among(Block* nodes, std::size_t first, std::size_t n, const Pair& pair) {
  for (std::size_t i = 0; i < n; ++i) {
    const Block here = block_mask(equal_bit((first + i) / 2, pair.index));
    nodes[i] = blend(here, pair.nodes[i % 2], nodes[i]);
  }
}

void store_pair(Block* nodes, std::size_t n, const Pair& pair) {
  store_pair_among(nodes, 0, n, pair);
}

/// Expands at most kNodes nodes x and writes their children masked with `keep`.
Block expand_chunk(const RoundKeys& keys, const Block* x, std::size_t n, Block keep,
                   Block* children) {
  std::array<Block, kNodes> in{}, out;
  for (std::size_t i = 0; i < n; ++i) in[i] = sigma(x[i]);
  prg::aes128::portable::encrypt(keys, in.data(), n, out.data());
  Block sum{};
  for (std::size_t i = 0; i < n; ++i) {
    const Block left = out[i] ^ in[i];
    sum ^= left;
    children[2 * i] = left & keep;
    children[2 * i + 1] = (left ^ x[i]) & keep;
  }
  return sum;
}

template <bool last>
Block expand(const RoundKeys& keys, const Block* nodes, std::size_t n, Block* children) {
  constexpr Block kKeep = {~std::uint64_t{last}, ~std::uint64_t{0}};
  Block sum{};
  for (std::size_t i = 0; i < n; i += kNodes) {
    sum ^= expand_chunk(keys, nodes + i, std::min(kNodes, n - i), kKeep, children + 2 * i);
  }
  return sum;
}

template <bool last>
Block expand_with_pair(const RoundKeys& keys, const Block* nodes, std::size_t n, const Pair& pair,
                       Block* children) {
  Block sum{};
  for (std::size_t i = 0; i < n; i += kNodes) {
    std::array<Block, kNodes> own;
    const std::size_t count = std::min(kNodes, n - i);
    std::copy_n(nodes + i, count, own.begin());
    store_pair_among(own.data(), i, count, pair);
    sum ^= expand<last>(keys, own.data(), count, children + 2 * i);
  }
  return sum;
}

void store_part(Block* blocks, std::size_t parts, std::size_t n, std::uint64_t place,
                const Block* from) {
  for (std::size_t part = 0; part < parts; ++part, blocks += n) {
    const Block here = block_mask(equal_bit(part, place));
    for (std::size_t i = 0; i < n; ++i) blocks[i] = blend(here, from[i], blocks[i]);
  }
}

}  // namespace

const TreeKernels kTreeKernels = {expand<false>,          expand<true>, expand_with_pair<false>,
                                  expand_with_pair<true>, store_pair,   store_part};

}  // namespace portable
}  // namespace nescio::ot
