#pragma once

// Arithmetic on the 64-byte leaves of a DPF as vectors of shares in one of the output groups.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/block.h"
#include "base/cpu.h"
#include "dpf/correct_words.h"
#include "dpf/key.h"
#include "ggm/walk.h"

namespace nescio::dpf {

__extension__ typedef unsigned __int128 u128;

/// Calls `f` with a value of the word type of an additive output.
template <class F>
decltype(auto) with_word(Output output, F&& f) {
  switch (output) {
    case Output::u32: return f(std::uint32_t{});
    case Output::u64: return f(std::uint64_t{});
    case Output::u128: return f(u128{});
    default: return f(std::uint8_t{});
  }
}

using Leaf = std::array<Block, prg::kLeafBlocks>;

/// Returns the vector that is `payload` at `position` and 0 elsewhere; constant time in both.
Leaf unit_leaf(Output output, std::uint64_t position, Block payload);

/// Returns the leaf correction (-1)^{t1} (unit - own0 + own1), for the leaves own0 and own1 of the two
/// parties on the path and party 1's control bit t1; for bits, the XOR of all three. Constant time.
Leaf leaf_correction(Output output, const Leaf& unit, const Leaf& own0, const Leaf& own1,
                     std::uint64_t t1);

/// Converts bottom nodes of keys to shares, with the code of a tier.
class LeafShares {
 public:
  LeafShares(const Keys& keys, Tier tier);

  /// shares[i] = (-1)^party (H(nodes[i]) + t_i * CW), leaf by leaf, or H(nodes[i]) ^ t_i * CW for
  /// bits, for 2^node_bits nodes of each of the keys first..first+count-1; for a single key,
  /// `nodes` of any number.
  void write(std::size_t first, std::size_t count, const Block* nodes, std::size_t per_key,
             Block* shares) const;

 private:
  const Keys& keys_;
  const prg::Generator& generator_;
  Tier tier_;
};

/// sums = a + b in the output group, for `bytes` bytes, a multiple of the element's size.
void combine(Output output, const std::uint8_t* a, const std::uint8_t* b, std::size_t bytes,
             std::uint8_t* sums);

}  // namespace nescio::dpf
