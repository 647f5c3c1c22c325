#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"
#include "base/math.h"
#include "base/thread_pool.h"

namespace nescio::batch {

/// Sets that a thread takes at a time.
constexpr std::size_t kSetsPerTask = 256;

/// The most accesses of a set: their numbers have 31 bits.
constexpr std::int64_t kMaxSet = (std::int64_t{1} << 31) - 1;

/// Throws Error(argument) unless offsets ascend from 0 to `accesses`.
inline void check_offsets(std::span<const std::int64_t> offsets, std::size_t accesses) {
  const auto fail = [](const std::string& found, const std::string& expected) {
    throw Error(ErrorKind::argument, "offsets of sets: found " + found + ", expected " + expected);
  };
  if (offsets.empty()) fail("none", "one more than there are sets");
  if (offsets.front() != 0) fail(std::to_string(offsets.front()) + " as the first", "0");
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1]) {
      fail(std::to_string(offsets[i]) + " after " + std::to_string(offsets[i - 1]),
           "ascending offsets");
    }
    if (offsets[i] - offsets[i - 1] > kMaxSet) {
      fail("a set of " + std::to_string(offsets[i] - offsets[i - 1]) + " accesses",
           "at most 2^31 - 1");
    }
  }
  if (offsets.back() != static_cast<std::int64_t>(accesses)) {
    fail(std::to_string(offsets.back()) + " as the last",
         std::to_string(accesses) + ", the number of accesses");
  }
}

/// Calls task(first, end, worker) with ranges of the sets, from the pool's threads.
template <class Task>
void for_sets(std::size_t sets, ThreadPool& pool, const Task& task) {
  pool.run(ceil_div(sets, kSetsPerTask), [&](std::size_t number, unsigned worker) {
    const std::size_t first = number * kSetsPerTask;
    task(first, std::min(sets, first + kSetsPerTask), worker);
  });
}

}  // namespace nescio::batch
