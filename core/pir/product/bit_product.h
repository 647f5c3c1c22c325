#pragma once

// The GF(2) product of share bits with a tile of a sliced table (see pir/sliced.h), one file per CPU
// tier.
//
// For the shares s_q of key q, one bit per row of a tile, and a bit column c of the tile, bit c of the
// key's sum is XORed with the parity of s_q AND c. A group has eight keys. The time depends on sizes
// only, never on the shares.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/block.h"
#include "base/math.h"
#include "base/tier.h"
#include "pir/sliced.h"

namespace nescio::pir {

inline constexpr std::size_t kKeyGroup = 8;

/// Returns the groups for `keys` keys; the last may be partly empty.
NESCIO_INLINE std::size_t key_groups(std::size_t keys) { return ceil_div(keys, kKeyGroup); }

/// A row, and the place of its share among those that are copied.
struct RowPlace {
  std::uint64_t row;
  std::uint64_t place;
};

/// One tier's code. Sums and scratch buffers are aligned to cache lines. Sums begin as zero, and the
/// sums of two threads are added by XOR.
struct BitProduct {
  /// Keys whose sums share a line per block: 1 or kKeyGroup.
  std::size_t keys_per_line;
  std::size_t sum_bytes(std::size_t keys, std::size_t blocks) const {
    return ceil_div(keys, keys_per_line) * blocks * kLineBytes;
  }

  std::size_t (*scratch_bytes)(std::size_t keys);

  /// Converts the shares of a tile's rows to the layout of add_tile, in `scratch`. The shares of key q
  /// are the 64 bytes at shares + q * stride; bits beyond the tile's rows are ignored.
  void (*lay_out)(const std::uint8_t* shares, std::size_t stride, std::size_t keys,
                  std::uint8_t* scratch);

  /// Copies shares of some rows of a tile out of the layout of add_tile: bit q of
  /// out[g * stride + place] becomes that of key q of group g, or 0 if bit q of masks[g] is.
  void (*copy_shares)(const std::uint8_t* scratch, std::size_t keys, std::span<const RowPlace> rows,
                      const std::uint8_t* masks, std::uint8_t* out, std::size_t stride);

  /// Converts such copies of consecutive places, of the rows of a tile of so many lines, to the layout of
  /// add_tile. 512 bytes of each group are readable.
  void (*lay_out_copies)(const std::uint8_t* copies, std::size_t stride, std::size_t lines,
                         std::size_t keys, std::uint8_t* scratch);

  /// Adds the product of the shares in `scratch` with a tile.
  void (*add_tile)(const Tile& tile, const std::uint8_t* scratch, std::size_t keys,
                   std::uint8_t* sums);

  /// Writes the sums of `count` keys of the group that begins with key `first`, a multiple of
  /// kKeyGroup, as rows of `row_bytes` bytes, one after the other.
  void (*read_sums)(const std::uint8_t* sums, std::size_t first, std::size_t count,
                    std::size_t row_bytes, std::uint8_t* rows);
};

/// Returns the product in the code of `tier`.
const BitProduct& bit_product(Tier tier);

NESCIO_TIERS(std::size_t scratch_bytes(std::size_t keys);
             void lay_out(const std::uint8_t* shares, std::size_t stride, std::size_t keys,
                          std::uint8_t* scratch);
             void copy_shares(const std::uint8_t* scratch, std::size_t keys,
                              std::span<const RowPlace> rows, const std::uint8_t* masks,
                              std::uint8_t* out, std::size_t stride);
             void lay_out_copies(const std::uint8_t* copies, std::size_t stride, std::size_t lines,
                                 std::size_t keys, std::uint8_t* scratch);
             void add_tile(const Tile& tile, const std::uint8_t* scratch, std::size_t keys,
                           std::uint8_t* sums);
             extern const BitProduct kBitProduct;)

}  // namespace nescio::pir
