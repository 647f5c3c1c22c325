#pragma once

// The server's part of a lookup: the product of a key's share vector with the table.
//
// With shares y_b(r) of the point function that is 1 at the wanted row, party b answers
//
//     a_b = sum over rows r of y_b(r) * table[r],
//
// where rows are vectors over the output group (bytes for bits and Z_2^8, little-endian words
// otherwise), and a_0 + a_1 is the row. The sum over a window of rows (layout.h) is a part of it. The product is fused with the walk over the keys' trees
// (section 3.2.4 of "GPU-based Private Information Retrieval for On-Device Machine Learning
// Inference", 2024): a tile of the share vectors of all keys is expanded, used and discarded.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "dpf/key.h"
#include "pir/layout.h"

namespace nescio::pir {

class ShareTaps;

/// A table in memory. Not owned.
struct Table {
  const std::uint8_t* data;
  const TableExtent& extent;
};

/// Returns the bytes of one answer: the row, rounded up to whole elements of the output group.
std::size_t answer_bytes(dpf::Output output, std::size_t row_bytes);

/// Returns the lookups that keys are for, `keys[g]` those for the bins of group g. In a group they are in
/// the order lookup, bin, key.
///
/// Throws Error(argument) unless there are keys of the same number of lookups for each group, and
/// Error(mismatch) unless their domain is the rows of a bin and their output that of the table.
std::size_t count_lookups(const TableExtent& extent, std::span<const dpf::Keys* const> keys);

/// Writes the answers of count_lookups(...) lookups to `out`, answer_bytes(...) each, one lookup after the
/// other, and each in the order of Bins. The keys of all lookups for one bin are answered together.
///
/// Threads divide the bins; they divide the rows of bins that are fewer than threads, so a single key is
/// parallel too. Besides keys and answers, and a copy of both if there are several bins, each thread uses
/// O(keys x depth) memory and at most about 20 megabytes, or eight times the row length, independent of
/// the number of rows (see plan.h). The time depends on sizes only. Throws as count_lookups does.
/// `taps` get all shares of a table of a single bin, and nothing of others.
void answer(const Table& table, std::span<const dpf::Keys* const> keys, std::uint8_t* out,
            ThreadPool& pool, Tier tier, ShareTaps* taps = nullptr);

}  // namespace nescio::pir
