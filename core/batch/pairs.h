#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/thread_pool.h"

namespace nescio::batch {

/// The sets of a log: set s is of user users[s] and has the different rows rows[offsets[s]] to
/// rows[offsets[s + 1] - 1], all below `limit`. Users ascend, each from 0 to 2^31 - 1.
struct UserSets {
  std::span<const std::int64_t> offsets;
  std::span<const std::int64_t> rows;
  std::span<const std::int64_t> users;
  std::size_t limit;
};

/// Finds the `count` rows that most sets have together with each row.
///
/// A pair counts only if sets of at least `min_users` users have it. Of pairs in equally many sets,
/// those with a smaller row come first. Writes `count` rows for each row below `limit`, -1 where
/// there are fewer.
///
/// Each thread counts the pairs of some rows at a time, in memory for each row below `limit`. Throws
/// Error(argument) for sets that are not as described.
void count_pairs(const UserSets& sets, std::size_t count, std::int64_t min_users, std::int64_t* out,
                 ThreadPool& pool);

}  // namespace nescio::batch
