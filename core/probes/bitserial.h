#pragma once

// What the machine could do at most: the measure that benchmarks hold products against.

#include <cstddef>
#include <string_view>

#include "base/cpu.h"

namespace nescio::bitserial {

/// Seconds that one thread needs for a weight of a product with `batch` vectors (those beyond
/// kMaxVectors are left out), by the inner loops alone, when weights and activations are in the
/// first-level cache as far as they can. The loops are those that a matrix of `rows` rows takes. Throws Error(argument) for bits that cannot be and as parse_method does.
double seconds_per_weight(unsigned weight_bits, unsigned activation_bits, std::size_t rows,
                          std::size_t batch, Tier tier, std::string_view kernel);

}  // namespace nescio::bitserial
