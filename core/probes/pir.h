#pragma once

// Machine limits for answers: upper bounds that benchmarks compare with.

#include <cstdint>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "dpf/output.h"
#include "pir/answer.h"

namespace nescio::pir {

/// Reads every byte of a table once, with all threads of the pool. Returns the XOR of all words, so that
/// the compiler keeps the reads.
std::uint64_t read_all(const Table& table, ThreadPool& pool);

/// Measures the seconds of one thread for the product of one key's shares with a byte of a table in its
/// layout, with all data in the first-level cache and 128 keys at once.
double seconds_per_byte(dpf::Output output, Tier tier);

}  // namespace nescio::pir
