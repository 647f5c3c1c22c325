#pragma once

// Answers of older versions of a table, from those of the current one.
//
// An answer is linear in the rows (pir/answer.h). With the difference d(r) = old(r) - new(r) of the rows
// that an update changed, in the output group,
//
//     answer(old) = answer(new) + sum over changed rows r of y_b(r) * d(r).
//
// A patch has these differences. Only the shares of changed rows are computed: each key's tree is walked
// to the leaves that have one, each node once. Their product with the differences is that of an answer.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/buffer.h"
#include "base/cpu.h"
#include "base/thread_pool.h"
#include "dpf/key.h"
#include "pir/layout.h"

namespace nescio::pir {

/// The rows that an update of a table changed, and their differences.
class Patch {
 public:
  /// Subtracts new rows from old ones, of extent.row_bytes() each; both are those of the rows with the
  /// numbers `indices`, which increase. Throws Error(argument) if they do not increase, Error(index) for
  /// one outside the table.
  Patch(TableExtent extent, std::span<const std::uint64_t> indices, const std::uint8_t* old_rows,
        const std::uint8_t* new_rows);

  const TableExtent& extent() const { return extent_; }
  std::span<const std::uint64_t> indices() const { return {indices_.data(), indices_.size()}; }
  /// Returns a difference: answer_bytes(...) bytes.
  const std::uint8_t* difference(std::size_t i) const { return &differences_[i * width_]; }
  std::size_t bytes() const {
    return indices_.size() * sizeof(std::uint64_t) + differences_.size();
  }

 private:
  TableExtent extent_;
  std::size_t width_;
  Buffer<std::uint64_t> indices_;
  Buffer<std::uint8_t> differences_;
};

/// Adds the sums of patches of one table to answers, which have the places of `answer`. Threads divide
/// the bins and the keys to each. Besides the patches' rows, 16 bytes each, a thread uses memory for its
/// sums as `answer` does. The time depends on sizes and on the patches only, not on keys. Throws as
/// count_lookups does, and Error(argument) for patches of different tables.
void add_patches(std::span<const Patch* const> patches, std::span<const dpf::Keys* const> keys,
                 std::uint8_t* answers, ThreadPool& pool, Tier tier);

}  // namespace nescio::pir
