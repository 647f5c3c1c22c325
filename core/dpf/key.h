#pragma once

// Distributed point functions: Boyle, Gilboa and Ishai, "Function Secret Sharing: Improvements and
// Extensions" (2016), section 3.2, with its early termination (section 3.2.1) and two changes that do
// not affect the proof: leaves of 512 bits, and trees of arity 2 or 4.
//
// The point function P(alpha, beta) is beta at alpha and 0 elsewhere on {0, ..., domain-1}. Two
// keys, one per party, give shares y0 and y1 with y0(x) + y1(x) = P(x), where + is XOR for single
// bits and addition mod 2^w for words. Each party expands a GGM tree from its root seed. The same
// corrections are part of both keys. At every node off the path to alpha they give both parties the
// same seed and the same control bit; at every node on the path, seeds that look unrelated and
// different control bits. Off the path the shares therefore cancel; on the path the leaf correction
// turns their difference into beta.
//
// A key as bytes, little-endian, is
//
//    0   2  "NK"
//    2   1  version, 1
//    3   1  generator
//    4   1  output
//    5   1  party, 0 or 1
//    6   2  zero
//    8   8  domain, 1 to 2^40
//   16  16  root seed; bit 0 is the party
//   32  16 (arity - 1) depth   corrections, level by level
//   ..  ceil(depth / 8)        one bit per level (see below), padded with zeros
//   ..  64                     correction of the leaf
//
// A level's corrections c_0, ..., c_{arity-1} XOR to zero except in their lowest bits, which correct
// the control bits. The key therefore contains only the lowest bit of the last one.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/block.h"
#include "base/buffer.h"
#include "base/cpu.h"
#include "dpf/output.h"
#include "ggm/walk.h"
#include "prg/prg.h"

namespace nescio::dpf {

inline constexpr std::uint64_t kMaxDomain = std::uint64_t{1} << 40;
inline constexpr std::uint8_t kVersion = 1;
inline constexpr std::size_t kHeaderBytes = 16;

/// The public parameters of both keys: everything but the point and the payload.
struct Shape {
  std::uint64_t domain;
  Output output;
  prg::GeneratorId generator;

  friend bool operator==(const Shape&, const Shape&) = default;

  /// Throws Error(argument) unless 1 <= domain <= kMaxDomain.
  void check() const;
  std::uint64_t leaves() const;   ///< leaves that cover the domain
  unsigned radix_bits() const;    ///< log2 of the tree's arity
  unsigned depth() const;         ///< levels below the root
  std::size_t key_bytes() const;  ///< of each key
  std::string describe() const;   ///< "bit keys over 1000 points from aes128", for messages
};

/// A part of keys that are a matrix: its rows have `columns` columns of `run` keys. The part has columns
/// first..first+count-1, one after the other; of each the keys from..from+keys-1, counted from the first
/// row to the last.
struct ColumnsOfKeys {
  std::size_t columns, run;
  std::size_t first, count;
  std::size_t from, keys;
};

/// The arrays of some keys: their parties and roots, and their corrections, level by level.
struct KeyArrays {
  std::uint8_t* parties;
  Block* roots;
  Block* corrections;
  std::size_t level_stride;
  Block* leaf_corrections;
};

/// Keys of one shape, stored level by level, so that operations on all keys are contiguous.
///
/// The only parser of serialized keys: the content of a Keys is safe to evaluate.
class Keys {
 public:
  /// Makes an empty object.
  Keys() = default;

  /// Reads `count` keys of `key_bytes` bytes each. Throws Error(malformed_key) with what was found and
  /// expected, and Error(mismatch) for keys of different shapes.
  Keys(const std::uint8_t* bytes, std::size_t count, std::size_t key_bytes);

  /// Concatenates keys. Throws Error(mismatch) for keys of different shapes.
  static Keys join(std::span<const Keys* const> parts);

  /// Copies a part of the keys.
  void copy(const ColumnsOfKeys& part, const KeyArrays& to) const;

  /// Copies a part of other keys here; in the memory that is here if it has the size.
  void take(const Keys& from, const ColumnsOfKeys& part);

  std::size_t size() const { return parties_.size(); }
  const Shape& shape() const { return shape_; }
  unsigned party(std::size_t i) const { return parties_[i]; }

  /// Returns the trees of keys first..first+count-1, with the generator of `tier`. They point into
  /// this object.
  ggm::Forest forest(std::size_t first, std::size_t count, Tier tier) const;

  /// Returns the leaf corrections of those keys, for 2^node_bits leaves of each.
  prg::Corrections leaf_corrections(std::size_t first, std::size_t count, unsigned node_bits) const;

 private:
  Keys(const Shape& shape, std::size_t count);
  Block* level(unsigned k) { return corrections_.data() + k * level_stride(); }
  const Block* level(unsigned k) const { return corrections_.data() + k * level_stride(); }
  std::size_t level_stride() const { return size() << shape_.radix_bits(); }
  void read(std::size_t i, std::span<const std::uint8_t> bytes);

  Shape shape_ = {1, Output::bit, prg::GeneratorId::aes128};
  std::vector<std::uint8_t> parties_;
  Buffer<Block> roots_;
  Buffer<Block> corrections_;       // level by level; in each, arity blocks per key
  Buffer<Block> leaf_corrections_;  // kLeafBlocks blocks per key
};

/// The content of a key's first kHeaderBytes.
struct Header {
  Shape shape;
  unsigned party;
};

/// Reads a header. Throws Error(malformed_key).
Header parse_header(std::span<const std::uint8_t> bytes);

/// Offsets of the parts of a serialized key.
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
