#pragma once

// The keys of AES under which trees and transfers are hashed. An attacker who looks for any of T hidden
// values that were hashed under one key finds one in a T-th of the work, and a session hides delta
// in every level of every tree and in every transfer: under one key for all, 2^24 transfers would leave 109
// bits of delta's 127. So keys are many (Guo, Katz, Wang, Weng, Yu, "Better Concrete Security for
// Half-Gates Garbling", Crypto 2020), and all are public:
//
//   level l of tree j          base ^ (j << kLevelBits | l)
//   transfers of stretch s     base ^ s           number i is of stretch i >> kStretchBits
//
// where a base serves one extension, or the transfers of one session (src/nescio/ot/_keys.py). That
// leaves 127 bits in the trees and, if all other messages become known, 127 - kStretchBits in transfers.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/block.h"
#include "base/cpu.h"
#include "ot/trees/tree.h"
#include "prg/aes128.h"

namespace nescio::ot {

using prg::aes128::RoundKeys;

inline constexpr unsigned kLevelBits = 6;
inline constexpr unsigned kStretchBits = 6;
static_assert(kMostDepth <= 1u << kLevelBits);

/// The keys of one tree at a time.
class TreeKeys {
 public:
  TreeKeys(Tier tier, Block base, unsigned depth)
      : cipher_(prg::aes128::cipher_of(tier)), base_(base), depth_(depth) {}

  /// From now on the keys are those of this tree.
  void turn_to(std::uint64_t tree) {
    cipher_.expand_keys(base_, tree << kLevelBits, depth_, keys_.data());
  }

  /// That under which the nodes of a level, 1 to depth - 1, are hashed.
  const RoundKeys& operator[](unsigned level) const { return keys_[level]; }

 private:
  prg::aes128::Cipher cipher_;
  Block base_;
  unsigned depth_;
  std::array<RoundKeys, kMostDepth> keys_;
};

}  // namespace nescio::ot
