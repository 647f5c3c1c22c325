#pragma once

// The hashes of a table's rows, and of the hash tables above it:
//
//   H(level, number, record) = SHA-256("NescioL" || level || number || record)
//
// where the level is one ASCII digit and the number is 8 bytes, little-endian. Level 0 has the rows of the
// table, numbered by their indices. A record of level l >= 1 is kArity hashes of level l - 1, zeros where
// there are no more. All records of a level have one length, and the level is in the prefix, so no
// record is hashed like another.

#include <cstddef>
#include <cstdint>

#include "base/block.h"
#include "base/thread_pool.h"
#include "base/tier.h"

namespace nescio::hash {

inline constexpr std::size_t kHashBytes = 32;
inline constexpr std::size_t kArity = 16;
inline constexpr std::size_t kHashRowBytes = kArity * kHashBytes;
inline constexpr unsigned kMaxLevel = 7;

/// Records of one length, one after the other.
struct Records {
  const std::uint8_t* data;
  std::size_t count;
  std::size_t bytes;  ///< of each record, at least 1
};

/// The numbers of records: those in an array, or first, first + 1, ...
struct Numbers {
  const std::uint64_t* each;  ///< null for consecutive numbers
  std::uint64_t first;

  NESCIO_INLINE std::uint64_t of(std::size_t i) const { return each ? each[i] : first + i; }
  NESCIO_INLINE Numbers from(std::size_t i) const { return {each ? each + i : each, first + i}; }
};

/// Writes the hash of every record, kHashBytes each. The time and the memory addresses depend only on
/// the level and on the number and length of the records. Throws Error(argument) for a level above
/// kMaxLevel or records without bytes.
void hash_records(const Records& records, unsigned level, const Numbers& numbers, std::uint8_t* out,
                  ThreadPool& pool, Tier tier);

/// The same, by the calling thread.
void hash_records(const Records& records, unsigned level, const Numbers& numbers, std::uint8_t* out,
                  Tier tier);

/// Each tier's function; `tag` is the level's prefix.
NESCIO_TIERS(void hash_all(const Records& records, std::uint64_t tag, const Numbers& numbers,
                           std::uint8_t* out);)

}  // namespace nescio::hash
