#pragma once

// Machine limits for oblivious transfer, against which benchmarks compare.

#include <cstddef>

namespace nescio::ot {

/// Measures independent random reads of one thread among `blocks` blocks; returns the seconds per
/// read. The size selects the cache level, or main memory, that is measured.
double seconds_per_read(std::size_t blocks);

}  // namespace nescio::ot
