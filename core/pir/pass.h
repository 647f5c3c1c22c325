#pragma once

// A pass over bins of one size, each for keys of its own: the walks over the trees of all keys, fused
// with the products of their shares and the bins' rows.

#include <cstddef>
#include <cstdint>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "dpf/key.h"
#include "pir/layout.h"

namespace nescio::pir {

/// Bins of one size that follow each other in memory. Not owned.
struct BinRun {
  const std::uint8_t* data;
  Extent extent;
  std::size_t bytes;  ///< of each bin
  std::size_t count;
};

/// Writes the answer to key i of one bin to out + i * answer_bytes(...). Threads divide the rows.
void answer_bin(const BinRun& bin, const dpf::Keys& keys, std::uint8_t* out, ThreadPool& pool,
                Tier tier);

/// Writes the answers to the keys of some bins, the same number for each, bin by bin. The calling thread
/// walks the trees of several bins together, which fills the generators' wide kernels where a bin has
/// few keys.
void answer_bins(const BinRun& bins, const dpf::Keys& keys, std::uint8_t* out, Tier tier);

/// Returns the bins with `keys` keys each that are worth a call of answer_bins.
std::size_t bins_per_pass(const Extent& bin, const dpf::Shape& shape, std::size_t keys, Tier tier);

}  // namespace nescio::pir
