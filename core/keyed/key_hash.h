#pragma once

// The hashes of a keyed table's keys, which are bytes of any length; the first one tells the key's type:
//
//   words of a key = SHA-256(seed || key), as four 64-bit words, little-endian
//
// The first three words give the key's places, the last is its fingerprint, and never zero: a digest
// whose last word is zero gets 1 there. tests/spec/keyed.py is the specification.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/thread_pool.h"

namespace nescio::keyed {

inline constexpr std::size_t kSeedBytes = 32;
inline constexpr unsigned kSubtables = 3;

/// The four words of a key.
struct KeyWords {
  std::array<std::uint64_t, kSubtables> at;
  std::uint64_t fingerprint;

  bool operator==(const KeyWords&) const = default;
};
static_assert(sizeof(KeyWords) == 32);

/// Keys one after the other: key i has the bytes from ends[i - 1] (0 for the first) to ends[i].
struct PackedKeys {
  std::span<const std::uint8_t> data;
  std::span<const std::uint64_t> ends;
};

/// Writes the words of every key to `out`.
///
/// The time and the memory addresses depend only on the lengths of the keys. Throws Error(argument) for
/// a seed of another length, ends that decrease, or a last end that is not the length of the data.
void hash_keys(std::span<const std::uint8_t> seed, const PackedKeys& keys, KeyWords* out,
               ThreadPool& pool);

}  // namespace nescio::keyed
