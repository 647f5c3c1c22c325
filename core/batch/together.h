#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/thread_pool.h"

namespace nescio::batch {

/// Finds, for each access of a set, the accesses of the same set that arrive with it.
///
/// Set s has the accesses offsets[s] to offsets[s + 1] - 1. Access i is of row rows[i], and with it
/// arrive the rows in line lists[i] of `neighbors` (of `width` rows each, -1 for none); lists[i] is
/// -1 if there are none. Writes the numbers of these accesses within their set, -1 for a row that is
/// not in it. If a row occurs several times in a set, the first access counts. Throws
/// Error(argument) for offsets that do not ascend from 0 to the number of accesses, and for lists
/// that do not exist.
void find_together(std::span<const std::int64_t> offsets, std::span<const std::int64_t> rows,
                   std::span<const std::int64_t> lists, std::span<const std::int64_t> neighbors,
                   std::size_t width, std::int32_t* out, ThreadPool& pool);

}  // namespace nescio::batch
