#pragma once

// Machine limits for ring-LWE products, against which benchmarks compare.

#include "base/cpu.h"

namespace nescio::rlwe {

/// Seconds of the inner loops of one row in the cache.
struct RowSeconds {
  double forward;  ///< a transform
  double inverse;  ///< an inverse transform
  double product;  ///< one term of a sum of products
  double block;    ///< 64 bytes of randomness
};

/// Measures the inner loops of a tier; the best of several attempts.
RowSeconds seconds_per_row(Tier tier);

}  // namespace nescio::rlwe
