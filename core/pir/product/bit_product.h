#pragma once

// The GF(2) product of share bits with a tile of a sliced table (see sliced.h), one file a CPU
// tier.
//
// For the shares s_q of key q, bits over the 512 rows of a tile, and a bit column c of it, each
// key's sum gets the parity of s_q AND c. Eight keys are one group. Time depends on sizes only,
// never on the shares.

#include <cstddef>
#include <cstdint>

#include "base/block.h"
#include "base/tier.h"
#include "pir/sliced.h"

namespace nescio::pir {

inline constexpr std::size_t kKeyGroup = 8;

/// Groups that hold so many keys; the last may be part empty.
NESCIO_INLINE std::size_t key_groups(std::size_t keys) {
  return (keys + kKeyGroup - 1) / kKeyGroup;
}

/// One tier's code. Sums and room are aligned to cache lines; sums
/// are zero at first, and two threads' sums add up by XOR of their bytes.
struct BitProduct {
  /// Keys whose sums share a line for each block, wanted or not: 1 or kKeyGroup.
  std::size_t keys_per_line;
  std::size_t sum_bytes(std::size_t keys, std::size_t blocks) const {
    return (keys + keys_per_line - 1) / keys_per_line * blocks * kLineBytes;
  }

  std::size_t (*room_bytes)(std::size_t keys);

  /// Puts the shares of a tile's rows into `room` as add_tile wants them: those of key q are the 64
  /// bytes at shares + q * stride, of which those beyond the tile's rows do not count.
  void (*lay_out)(const std::uint8_t* shares, std::size_t stride, std::size_t keys,
                  std::uint8_t* room);

  /// Adds the product of the shares in `room` with a tile.
  void (*add_tile)(const Tile& tile, const std::uint8_t* room, std::size_t keys,
                   std::uint8_t* sums);

  /// Writes the sums of `count` keys of the group that begins with key `first`, a multiple of
  /// kKeyGroup, as rows of `row_bytes` bytes, one after the other.
  void (*read_sums)(const std::uint8_t* sums, std::size_t first, std::size_t count,
                    std::size_t row_bytes, std::uint8_t* rows);
};

/// The product in the code of `tier`, or of the next narrower tier that has it.
const BitProduct& bit_product(Tier tier);

NESCIO_TIERS(std::size_t room_bytes(std::size_t keys);
             void lay_out(const std::uint8_t* shares, std::size_t stride, std::size_t keys,
                          std::uint8_t* room);
             void add_tile(const Tile& tile, const std::uint8_t* room, std::size_t keys,
                           std::uint8_t* sums);
             extern const BitProduct kBitProduct;)

/// read_sums of the wide tiers, which keep a line for each group of eight keys and block: bit q of
/// byte c is the sum of the group's key q in bit column c.
void read_group_sums(const std::uint8_t* sums, std::size_t first, std::size_t count,
                     std::size_t row_bytes, std::uint8_t* rows);

}  // namespace nescio::pir
