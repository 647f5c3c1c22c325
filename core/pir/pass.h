#pragma once

// Passes over bins of one size: the walks over the trees of all keys, fused with the products of their
// shares and the bins' rows.

#include <cstddef>
#include <cstdint>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "dpf/key.h"
#include "pir/layout.h"

namespace nescio::pir {

/// Gets the shares of a pass that a thread computes, for other products with them.
class ShareTap {
 public:
  virtual ~ShareTap() = default;
  /// Takes the shares of rows begin..end-1. Those of a tile are in the layout of its product
  /// (BitProduct::lay_out); words of key q are at shares + q * stride.
  virtual void take(const std::uint8_t* shares, std::size_t stride, std::uint64_t begin,
                    std::uint64_t end) = 0;
};

/// The taps of the passes over a bin.
class ShareTaps {
 public:
  virtual ~ShareTaps() = default;
  /// Begins a pass for the keys first..first+count-1.
  virtual void begin(std::size_t first, std::size_t count) = 0;
  /// Returns the tap of a thread; threads call it at the same time. Null for keys that need none.
  virtual ShareTap* tap(unsigned thread) = 0;
  /// Ends the pass, whose answers are in their places.
  virtual void end() = 0;
};

/// Bins of one size, the keys of lookups to them, and the places of the answers. Not owned.
struct BinQueries {
  const std::uint8_t* data;
  Extent extent;
  std::uint64_t first_row;  ///< in memory; 0 if there are several bins
  std::size_t bin_bytes;
  std::size_t bins;

  const dpf::Keys& keys;  ///< in the order lookup, bin, key
  std::size_t run;        ///< keys of a lookup to a bin

  std::uint8_t* out;         ///< of the first key
  std::size_t lookup_bytes;  ///< from a lookup's answers to the next one's
  std::size_t bytes_per_answer;

  /// Returns the keys to each bin. They are counted in the order lookup, key.
  std::size_t keys_per_bin() const { return keys.size() / bins; }
  /// Returns the place of the answer to a key to a bin.
  std::uint8_t* place(std::size_t bin, std::size_t key) const {
    return out + key / run * lookup_bytes + (bin * run + key % run) * bytes_per_answer;
  }
};

/// Answers the keys to one bin. Threads divide its rows. `taps`, if not null, get all shares.
void answer_bin(const BinQueries& queries, std::size_t bin, ThreadPool& pool, Tier tier,
                ShareTaps* taps);

/// Answers the keys to the first `bins` bins. Threads divide the bins. Each walks the trees of several
/// bins together where one has few keys: that fills the wide kernels of the generators.
void answer_bins(const BinQueries& queries, std::size_t bins, ThreadPool& pool, Tier tier);

}  // namespace nescio::pir
