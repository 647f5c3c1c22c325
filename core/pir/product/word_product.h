#pragma once

// The product of shares that are words mod 2^w with rows of words, one file per CPU tier.
//
// Rows are contiguous; a row that ends within a word is padded with zeros. The time depends on sizes
// only, never on the shares.

#include <cstddef>
#include <cstdint>

#include "base/tier.h"
#include "dpf/output.h"

namespace nescio::pir {

/// Adds shares x rows to the sums of `keys` keys. The shares of key q are `count` words at
/// shares + q * stride; its sum is the words of one row at sums + q * sum_stride.
using AddRows = void (*)(const std::uint8_t* rows, std::size_t count, std::size_t row_bytes,
                         const std::uint8_t* shares, std::size_t stride, std::size_t keys,
                         std::uint8_t* sums, std::size_t sum_stride);

/// Returns the product for an additive output in the code of `tier`.
AddRows word_product(dpf::Output output, Tier tier);

NESCIO_TIERS(AddRows word_product(dpf::Output output);)

}  // namespace nescio::pir
