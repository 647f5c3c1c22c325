#pragma once

// Answers of older versions of a table, from those of the current one.
//
// An answer is linear in the rows (pir/answer.h). With the difference d(r) = old(r) - new(r) of the rows
// that an update changed, in the output group,
//
//     answer(old) = answer(new) + sum over changed rows r of y_b(r) * d(r).
//
// Only the shares of changed rows are needed, and a pass computes them among all others: they are copied
// as they come by (pir/patch/taken.h). Without a pass, each key's tree is walked once to the leaves that
// have one. Their product with the differences is that of an answer.

#include <cstdint>
#include <span>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "dpf/key.h"
#include "pir/answer.h"
#include "pir/patch/patch.h"

namespace nescio::pir {

/// Adds the sums of the first ages[i] patches of one table to the answers of lookup i, which have the
/// places of `answer`. Threads divide the bins and the keys to each.
///
/// A thread uses memory for its sums as `answer` does, 256 KB of shares, and the shares of all changed rows
/// of 8 keys, or 1 MB. The time depends on sizes, ages and the patches only, not on keys. Throws as count_lookups
/// does, and Error(argument) for patches of different tables, or ages of which there is not one a lookup,
/// or that are more than there are patches.
void add_patches(std::span<const Patch* const> patches, std::span<const std::uint64_t> ages,
                 std::span<const dpf::Keys* const> keys, std::uint8_t* answers, ThreadPool& pool,
                 Tier tier);

/// Writes answers of several versions: those of `answer`, with `add_patches`. For a table of one bin the
/// shares of changed rows are copied out of the passes, up to 8 MB of them for each thread.
void answer_versions(const Table& table, std::span<const Patch* const> patches,
                     std::span<const std::uint64_t> ages, std::span<const dpf::Keys* const> keys,
                     std::uint8_t* answers, ThreadPool& pool, Tier tier);

}  // namespace nescio::pir
