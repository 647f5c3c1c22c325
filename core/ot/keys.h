#pragma once

// The AES keys under which trees and transfers are hashed. All keys are public. If T hidden values
// are hashed under one key, an attacker finds one of them in 1/T of the work. A session hides delta
// in every level of every tree and in every transfer: with one key for all, 2^24 transfers would
// leave 109 of the 127 bits of delta. So many keys are used (Guo, Katz, Wang, Weng, Yu, "Better
// Concrete Security for Half-Gates Garbling", Crypto 2020):
//
//   level l of tree j           base ^ (j << kLevelBits | l)
//   transfers of key period s   base ^ s           s = i >> kPeriodBits for transfer i
//
// A base is used for one extension, or for the transfers of one session (src/nescio/ot/_keys.py).
// This leaves 127 bits of security in the trees and, if all other messages become known, 127 -
// kPeriodBits in the transfers.

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
inline constexpr unsigned kPeriodBits = 6;
static_assert(kMaxDepth <= 1u << kLevelBits);

/// The keys of one tree at a time.
class TreeKeys {
 public:
  TreeKeys(Tier tier, Block base, unsigned depth)
      : cipher_(prg::aes128::cipher_of(tier)), base_(base), depth_(depth) {}

  /// Expands the keys of a tree.
  void select_tree(std::uint64_t tree) {
    cipher_.expand_keys(base_, tree << kLevelBits, depth_, keys_.data());
  }

  /// The key under which the nodes of a level, 1 to depth - 1, are hashed.
  const RoundKeys& operator[](unsigned level) const { return keys_[level]; }

 private:
  prg::aes128::Cipher cipher_;
  Block base_;
  unsigned depth_;
  std::array<RoundKeys, kMaxDepth> keys_;
};

}  // namespace nescio::ot
