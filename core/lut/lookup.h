#pragma once

// The lookups themselves, when the parties have opened the places: a share of an entry is the inner
// product of a one-hot share and of the table, rotated so that its entry 0 is at the opened place.
//
// Opened places are public. No branch and no address depends on the shares.

#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"
#include "base/tier.h"
#include "lut/fields.h"

namespace nescio::lut {

/// Bytes behind a table, which kernels may read and do not use.
inline constexpr std::size_t kPadding = 64;

/// A table of 2^bits entries of type T (8 or 16 bits), twice and backward, and kPadding bytes: entry j
/// of `twice` is entry -j of the table, modulo 2^bits. So the entries for opened place d start at -d.
template <class T>
struct Table {
  unsigned bits;
  const T* twice;
};

/// The length of `twice`; 0 for a table with too many entries.
template <class T>
constexpr std::size_t table_length(unsigned bits) {
  return bits > kMaxTableBits ? 0 : (std::size_t{2} << bits) + kPadding / sizeof(T);
}

/// Sets out[i] to the XOR of the entries (opened[i] - s) over all places s where share i is 1.
///
/// `shares` has 2^bits bits each, in at least one word whose other bits are zero. Throws Error(argument) for tables of more
/// than 2^kMaxTableBits entries, or shares that are too short.
void look_up(const Table<std::uint8_t>& table, std::size_t count,
             const Words<const std::uint64_t>& shares, const std::uint16_t* opened,
             std::uint8_t* out, ThreadPool& pool, Tier tier);
void look_up(const Table<std::uint16_t>& table, std::size_t count,
             const Words<const std::uint64_t>& shares, const std::uint16_t* opened,
             std::uint16_t* out, ThreadPool& pool, Tier tier);

/// Each tier's inner products of `words` words of a share with rotated entries, for `count` shares.
struct Kernels {
  void (*bytes)(const Table<std::uint8_t>& table, std::size_t count,
                const Words<const std::uint64_t>& shares, const std::uint16_t* opened,
                std::uint8_t* out);
  void (*halves)(const Table<std::uint16_t>& table, std::size_t count,
                 const Words<const std::uint64_t>& shares, const std::uint16_t* opened,
                 std::uint16_t* out);
};
NESCIO_TIERS(extern const Kernels kKernels;)

/// Adds to totals[i] the shares of a daBit, plus or minus by bit `number` of opened[i].
void add_dabits(unsigned number, std::size_t count, const std::uint16_t* opened,
                const std::uint32_t* dabits, std::uint32_t* totals);

}  // namespace nescio::lut
