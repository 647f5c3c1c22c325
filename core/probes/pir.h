#pragma once

// What the machine could do at most: the measures that benchmarks hold answers against.

#include <cstdint>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "dpf/output.h"
#include "pir/answer.h"

namespace nescio::pir {

/// Reads every byte of a table once, all threads of the pool at it, and does nothing else. Returns
/// their XOR in words, so that nothing is left out.
std::uint64_t read_all(const Table& table, ThreadPool& pool);

/// Seconds that one thread needs for the product of one key's shares with a byte of a table in its
/// layout, when everything is in the first-level cache and 128 keys are answered at once.
double seconds_per_byte(dpf::Output output, Tier tier);

}  // namespace nescio::pir
