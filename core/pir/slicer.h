#pragma once

// Conversion of rows to the tiles of a sliced table (see sliced.h) and back, one file per CPU tier.
// Each block of a tile has `lines` lines. Every tier writes the same bytes.

#include <cstddef>
#include <cstdint>

#include "base/tier.h"

namespace nescio::pir {

/// One tier's code.
struct Slicer {
  /// Makes a tile from its first `count` rows; the rest of its lines becomes zero.
  void (*slice)(const std::uint8_t* rows, std::size_t count, std::size_t row_bytes,
                std::size_t lines, std::uint8_t* tile);

  /// Makes the first `count` rows of a tile.
  void (*unslice)(const std::uint8_t* tile, std::size_t lines, std::size_t count,
                  std::size_t row_bytes, std::uint8_t* rows);

  /// Makes row `row` of a tile.
  void (*unslice_row)(const std::uint8_t* tile, std::size_t lines, std::size_t row,
                      std::size_t row_bytes, std::uint8_t* out);

  /// Overwrites the `count` rows of a tile with the numbers `changed` by `rows`, in order.
  void (*overwrite)(const std::uint16_t* changed, std::size_t count, const std::uint8_t* rows,
                    std::size_t row_bytes, std::size_t lines, std::uint8_t* tile);
};

NESCIO_TIERS(extern const Slicer kSlicer;)

}  // namespace nescio::pir
