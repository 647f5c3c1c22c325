#pragma once

// What the machine could do at most: the measures that benchmarks hold oblivious transfers against.

#include <cstddef>

namespace nescio::ot {

/// Seconds that one thread needs to read a block at random among `blocks`, when nothing waits for
/// what was read before: the rate of the memory that so many blocks fit into.
double seconds_per_read(std::size_t blocks);

}  // namespace nescio::ot
