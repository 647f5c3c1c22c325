#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/block.h"
#include "base/cpu.h"
#include "prg/corrections.h"

namespace nescio::prg {

/// The generators, with their numbers in a serialized key. Numbers are never reused.
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

/// Returns the log2 of the arity of a generator's trees: as many children as one call can output.
constexpr unsigned radix_bits(GeneratorId id) {
  switch (id) {
    case GeneratorId::chacha20:
    case GeneratorId::chacha12:
    case GeneratorId::chacha8:
    case GeneratorId::salsa20: return 2;
    default: return 1;
  }
}

/// Blocks of a leaf: every generator expands a bottom node to 512 output bits.
inline constexpr std::size_t kLeafBlocks = 4;
inline constexpr std::size_t kLeafBytes = kLeafBlocks * sizeof(Block);

/// The maximum arity of a generator's trees.
inline constexpr unsigned kMaxArity = 4;

/// Corrections of zero, for children and leaves of any number of trees.
inline constexpr Block kZeros[kMaxArity] = {};
inline constexpr Corrections kNoCorrections = {kZeros, Corrections::kOneTree};

/// A length-increasing pseudorandom generator on 128-bit nodes, in the code of one CPU tier.
///
/// G(s) = (G_0(s), ..., G_{arity-1}(s)) are the children of the node s. H(s), independent of G(s), is
/// the 512-bit leaf of a bottom node. Both functions XOR a correction into the results of nodes whose
/// control bit t (the lowest bit of s) is set, as in a DPF (Boyle, Gilboa and Ishai 2016, Figure 1). A
/// correction of zero gives the generator itself.
///
/// One call can process nodes of several trees, so small trees also fill the widest kernels. The time
/// of every function is independent of the blocks' values, in every tier.
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

/// Returns the generator in the code of `tier`.
const Generator& generator(GeneratorId id, Tier tier);

/// Returns the generator with that name. Throws Error(argument) with all names if it does not exist.
GeneratorId parse_generator(std::string_view name);

/// Returns false if no generator has that number; for untrusted bytes.
bool is_generator(std::uint8_t id) noexcept;

}  // namespace nescio::prg
