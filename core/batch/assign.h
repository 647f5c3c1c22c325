#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/thread_pool.h"

namespace nescio::batch {

/// An access that gets no slot, and one that needs none because another access brings it.
constexpr std::int8_t kDropped = -1;
constexpr std::int8_t kCovered = -2;

/// The largest number of candidates of an access.
constexpr std::size_t kMaxChoices = 64;

/// Sets of accesses, one after the other: set s has the accesses offsets[s] to offsets[s + 1] - 1.
///
/// Access i may use any bin of candidates[i * choices ...], the first of them by preference, and
/// brings the accesses together[i * neighbors ...], which are numbered within their set; -1 is none.
struct Sets {
  std::span<const std::int64_t> offsets;
  std::span<const std::int32_t> candidates;
  std::size_t choices;
  std::span<const std::int32_t> together;
  std::size_t neighbors;

  std::size_t accesses() const { return candidates.size() / choices; }
  std::size_t count() const { return offsets.size() - 1; }
};

/// Assigns the accesses of each set to bins, of which bin b serves capacity[b] accesses of a set.
///
/// The access that brings the most others which still need one is next; of equal ones, the first. It
/// gets a bin if there is an augmenting path (the shortest; accesses before it may change their bins,
/// and none loses its own): without neighbors, that serves the most accesses that any assignment
/// serves. Writes for each access the number of its candidate, kDropped, or kCovered.
///
/// Threads take sets. Time and memory accesses depend on the accesses: this runs where they are
/// known, on the device of their owner or on a log. Throws Error(argument) for offsets that do not
/// begin with 0, ascend and end with the number of accesses, for candidates that are not bins, and
/// for neighbors outside their set.
void assign(const Sets& sets, std::span<const std::int32_t> capacity, std::int8_t* out,
            ThreadPool& pool);

}  // namespace nescio::batch
