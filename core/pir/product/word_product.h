#pragma once

// The product of shares that are words mod 2^w with rows of words, one file a CPU tier.
//
// Rows stand one after the other; a row that ends within a word is read as if zeros followed. Time
// depends on sizes only, never on the shares.

#include <cstddef>
#include <cstdint>

#include "base/tier.h"
#include "dpf/output.h"

namespace nescio::pir {

/// Adds shares x rows to the sums of some keys. The shares of key q are `count` words from
/// shares + q * stride on, its sum the words from sums + q * sum_stride on, as many as hold a row.
using AddRows = void (*)(const std::uint8_t* rows, std::size_t count, std::size_t row_bytes,
                         const std::uint8_t* shares, std::size_t stride, std::size_t keys,
                         std::uint8_t* sums, std::size_t sum_stride);

/// The product for an additive output in the code of `tier`, or of the next narrower tier that has
/// it.
AddRows word_product(dpf::Output output, Tier tier);

NESCIO_TIERS(AddRows word_product(dpf::Output output);)

}  // namespace nescio::pir
