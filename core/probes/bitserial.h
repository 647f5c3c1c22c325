#pragma once

// Machine limits for bit-serial products, against which benchmarks compare.

#include <cstddef>
#include <string_view>

#include "base/cpu.h"

namespace nescio::bitserial {

/// Measures the inner loops of a product with `batch` vectors, at most kMaxVectors, on one thread,
/// with operands in the first-level cache if possible; returns the seconds per weight. The loops
/// are those for a matrix of `rows` rows. Throws Error(argument) for invalid bits, and as
/// parse_method does.
double seconds_per_weight(unsigned weight_bits, unsigned activation_bits, std::size_t rows,
                          std::size_t batch, Tier tier, std::string_view kernel);

}  // namespace nescio::bitserial
