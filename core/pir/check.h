#pragma once

// The client's check of rows against the hashes of their table (hash/records.h). A lookup of row i
// returns the row, and of each hash table l = 1, 2, ... the record that has the row's ancestor, with the
// number i / 16^l. The check hashes upward: each hash must be in its slot of the record above it, and
// the last one at its position among the top hashes, which the client knows.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/tier.h"

namespace nescio::pir {

/// The rows that lookups returned, and the records that prove them.
struct ProvenRows {
  std::span<const std::uint64_t> indices;
  const std::uint8_t* rows;  ///< a row for each index
  std::size_t row_bytes;
  /// For each hash table, lowest first: a record for each index, of hash::kHashRowBytes.
  std::span<const std::uint8_t* const> records;
  std::span<const std::uint8_t> tops;  ///< hashes of hash::kHashBytes
  /// For each index, the first of the top hashes that may prove its row, and the end of these: those of
  /// its bin, which is public. Without ranges, all top hashes may.
  std::span<const std::uint64_t> ranges = {};
};

/// Returns true if every row is proven; an index beyond the top hashes never is.
///
/// The time, the branches and the memory addresses depend only on the number of lookups and on the
/// shapes and ranges. Throws Error(argument) for rows without bytes, more than hash::kMaxLevel hash tables,
/// a part of a top hash, or a range that is not among the top hashes.
bool check_rows(const ProvenRows& found, Tier tier);

}  // namespace nescio::pir
