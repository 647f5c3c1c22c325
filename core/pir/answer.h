#pragma once

// A server's half of a lookup: the product of a key's share vector with the table.
//
// With shares y_b(r) of the point function that is 1 at the wanted row, party b answers
//
//     a_b = sum over rows r of y_b(r) * table[r],
//
// the rows read as vectors over the output group (bytes for bits and Z_2^8, little-endian words
// otherwise), and a_0 + a_1 is the row. The product is fused with the walk over the key's tree
// (section 3.2.4 of "GPU-based Private Information Retrieval for On-Device Machine Learning
// Inference", 2024): a tile of the share vectors of all keys is expanded, used and forgotten.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "dpf/key.h"

namespace nescio::pir {

/// A table in memory: `rows` rows of `row_bytes` bytes, one after the other. Not owned.
struct Table {
  const std::uint8_t* data;
  std::uint64_t rows;
  std::size_t row_bytes;
};

/// Bytes of one answer: the row, rounded up to whole elements of the output group.
std::size_t answer_bytes(dpf::Output output, std::size_t row_bytes);

/// Writes the answer to keys[i] at out + i * answer_bytes(...). Threads share out the rows, so that
/// a single key gains too. Beyond keys and answers the memory used is O(threads x keys x depth),
/// whatever the number of rows. The time taken depends on sizes only.
///
/// Throws Error(mismatch) unless all keys have one shape, whose domain is the table's rows.
void answer(const Table& table, std::span<const dpf::Key> keys, std::uint8_t* out, ThreadPool& pool,
            Tier tier);

}  // namespace nescio::pir
