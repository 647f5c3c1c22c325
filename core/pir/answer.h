#pragma once

// The server's part of a lookup: the product of a key's share vector with the table.
//
// With shares y_b(r) of the point function that is 1 at the wanted row, party b answers
//
//     a_b = sum over rows r of y_b(r) * table[r],
//
// where rows are vectors over the output group (bytes for bits and Z_2^8, little-endian words
// otherwise), and a_0 + a_1 is the row. The product is fused with the walk over the keys' trees
// (section 3.2.4 of "GPU-based Private Information Retrieval for On-Device Machine Learning
// Inference", 2024): a tile of the share vectors of all keys is expanded, used and discarded.

#include <cstddef>
#include <cstdint>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "dpf/key.h"
#include "pir/layout.h"

namespace nescio::pir {

/// A table in memory. Not owned.
struct Table {
  const std::uint8_t* data;
  Extent extent;
};

/// Returns the bytes of one answer: the row, rounded up to whole elements of the output group.
std::size_t answer_bytes(dpf::Output output, std::size_t row_bytes);

/// Writes the answer to key i to out + i * answer_bytes(...). Threads divide the rows, so a single key
/// is parallel too. Besides keys and answers each thread uses O(keys x depth) memory and at most about
/// 20 megabytes, or eight times the row length, independent of the number of rows (see plan.h). The
/// time depends on sizes only.
///
/// Throws Error(mismatch) unless the keys' domain is the number of rows, and Error(argument) if the
/// table does not have the layout of the keys' output.
void answer(const Table& table, const dpf::Keys& keys, std::uint8_t* out, ThreadPool& pool,
            Tier tier);

}  // namespace nescio::pir
