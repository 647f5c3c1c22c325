#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/block.h"
#include "base/cpu.h"
#include "prg/corrections.h"

namespace nescio::prg {

/// Generators by the number that a serialised key carries. Numbers are never reused.
enum class GeneratorId : std::uint8_t {
  aes128 = 1,
  chacha20 = 2,
  chacha12 = 3,
  chacha8 = 4,
  salsa20 = 5,
  sha256 = 6,
  insecure_siphash = 7,
  insecure_highwayhash = 8,
};

/// log2 of the arity of a generator's trees: as many children as fit what one call makes.
constexpr unsigned radix_bits(GeneratorId id) {
  switch (id) {
    case GeneratorId::chacha20:
    case GeneratorId::chacha12:
    case GeneratorId::chacha8:
    case GeneratorId::salsa20: return 2;
    default: return 1;
  }
}

/// Blocks in a leaf: every generator turns a node at the bottom of its tree into 512 output bits.
inline constexpr std::size_t kLeafBlocks = 4;
inline constexpr std::size_t kLeafBytes = kLeafBlocks * sizeof(Block);

/// The widest tree that a generator may grow.
inline constexpr unsigned kMostArity = 4;

/// Corrections that change nothing, of children and of leaves, for any number of trees in one.
inline constexpr Block kZeros[kMostArity] = {};
inline constexpr Corrections kNoCorrections = {kZeros, Corrections::kOneTree};

/// A length-increasing pseudorandom generator on 128-bit nodes, in one CPU tier's code.
///
/// G(s) = (G_0(s), ..., G_{arity-1}(s)) gives the children of the node s; H(s), independent of
/// G(s), gives 512 bits of output where the tree ends. Both functions add a correction to the
/// results of those nodes whose control bit t (the lowest bit of s) is set, as a DPF asks (Boyle,
/// Gilboa and Ishai 2016, Figure 1); a correction of zeros gives the generator itself.
///
/// Nodes of several trees go through one call, so that small trees fill the widest kernels too.
/// All functions run in time independent of the blocks' values, in every tier.
struct Generator {
  GeneratorId id;
  const char* name;
  unsigned radix_bits;  ///< log2 of the arity

  /// children[arity * i + j] = G_j(parents[i]) ^ t_i * corrections.of(i, arity)[j], for i below n.
  /// `children` does not overlap `parents`.
  void (*expand)(const Block* parents, std::size_t n, Corrections corrections, Block* children);

  /// leaves[4 * i + j] = H_j(nodes[i]) ^ t_i * corrections.of(i, 4)[j], for i below n and j
  /// below 4.
  void (*leaves)(const Block* nodes, std::size_t n, Corrections corrections, Block* leaves);

  constexpr unsigned arity() const { return 1u << radix_bits; }
};

/// The generator in the code of `tier`, or of the next narrower tier that has it.
const Generator& generator(GeneratorId id, Tier tier);

/// Throws Error(argument), listing the names there are, if `name` is none of them.
GeneratorId parse_generator(std::string_view name);

/// False for numbers that no generator has; for bytes from outside.
bool is_generator(std::uint8_t id) noexcept;

}  // namespace nescio::prg
