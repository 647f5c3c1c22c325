#pragma once

// Distributed point functions: Boyle, Gilboa and Ishai, "Function Secret Sharing: Improvements and
// Extensions" (2016), section 3.2, with its early termination (section 3.2.1) and two freedoms that
// change no proof: leaves of 512 bits, and trees of arity 2 or 4.
//
// The point function P(alpha, beta) is beta at alpha and 0 elsewhere on {0, ..., domain-1}. Two
// keys, one a party, give shares y0 and y1 with y0(x) + y1(x) = P(x), where + is XOR for single
// bits and addition mod 2^w for words. Below a root seed for each party grows a GGM tree;
// corrections, the same in both keys, see to it that at every node off the path to alpha both
// parties hold the same seed with the same control bit, and at every node on it seeds that look
// unrelated with control bits that differ. Off the path shares so cancel; on it the last correction
// turns what the seeds say into beta.
//
// A key as bytes, little-endian, is
//
//   0   2  "NK"                    16  16                     root seed; bit 0 is the party
//   2   1  version, 1              32  16 (arity-1) depth     corrections, level by level
//   3   1  generator               ..  ceil(depth / 8)        a bit a level (see below),
//   zero-padded 4   1  output                  ..  64                     correction of the leaf 5
//   1  party, 0 or 1 6   2  zero 8   8  domain, 1 to 2^40
//
// A level's corrections c_0, ..., c_{arity-1} XOR to zero but for their lowest bits, which are the
// corrections of control bits. So the last of them is not sent, only its lowest bit.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/block.h"
#include "base/cpu.h"
#include "ggm/walk.h"
#include "prg/prg.h"

namespace nescio::dpf {

/// The group that shares add up in, by the number that a serialised key carries.
enum class Output : std::uint8_t {
  bit = 0,   ///< one bit, XOR
  u8 = 1,    ///< Z_2^8
  u32 = 2,   ///< Z_2^32
  u64 = 3,   ///< Z_2^64
  u128 = 4,  ///< Z_2^128
};

const char* output_name(Output output) noexcept;

/// Throws Error(argument), listing the names there are, if `name` is none of them.
Output parse_output(std::string_view name);

/// Bits of one share: 1, 8, 32, 64 or 128.
unsigned element_bits(Output output) noexcept;

/// Shares in one leaf: 512, 64, 16, 8 or 4; and log2 of that, for who may not divide by a variable
/// because the time it takes depends on the dividend.
std::uint64_t leaf_elements(Output output) noexcept;
unsigned leaf_element_bits(Output output) noexcept;

inline constexpr std::uint64_t kMostDomain = std::uint64_t{1} << 40;
inline constexpr std::uint8_t kVersion = 1;
inline constexpr std::size_t kHeaderBytes = 16;

/// What both keys say openly: everything but the point and the payload.
struct Shape {
  std::uint64_t domain;
  Output output;
  prg::GeneratorId generator;

  friend bool operator==(const Shape&, const Shape&) = default;

  /// Throws Error(argument) unless 1 <= domain <= kMostDomain.
  void check() const;
  std::uint64_t leaves() const;   ///< leaves that hold the domain
  unsigned radix_bits() const;    ///< log2 of the tree's arity
  unsigned depth() const;         ///< levels below the root
  std::size_t key_bytes() const;  ///< of each key
  std::string describe() const;   ///< "bit keys over 1000 points from aes128", for messages
};

/// One party's key.
struct Key {
  Shape shape;
  unsigned party;
  Block root;
  std::vector<Block> corrections;  ///< arity blocks a level
  std::array<Block, prg::kLeafBlocks> leaf_correction;

  /// The key's tree in the code of `tier`; it refers to this key.
  ggm::Tree tree(Tier tier) const;
};

/// Reads a key. The only place where bytes become a key: whatever it returns is safe to evaluate.
/// Throws Error(malformed_key), naming what was found and what a key has there.
Key parse_key(std::span<const std::uint8_t> bytes);

/// Reads a key's header alone, with the same checks as parse_key makes of it.
struct Header {
  Shape shape;
  unsigned party;
};
Header parse_header(std::span<const std::uint8_t> bytes);

/// Where the parts of a serialised key stand.
struct Layout {
  explicit Layout(const Shape& shape);
  unsigned arity;
  unsigned depth;
  std::size_t root = kHeaderBytes;
  std::size_t corrections;
  std::size_t control_bits;
  std::size_t leaf_correction;
  std::size_t end;
};

/// Writes the first kHeaderBytes of a key.
void write_header(const Shape& shape, unsigned party, std::uint8_t* out);

}  // namespace nescio::dpf
