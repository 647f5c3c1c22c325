#pragma once

// The rows that an update overwrites, grouped by tile: a table is then read and written in order.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "base/thread_pool.h"
#include "pir/bins.h"
#include "pir/sliced.h"

namespace nescio::pir {

/// Changes of one tile: rows[i], counted from the tile's first row, becomes the i-th row of `bytes`.
struct TileChanges {
  std::span<const std::uint16_t> rows;
  const std::uint8_t* bytes;
};

/// Rows to overwrite, and a copy of their new bytes. The changes of a tile keep their order: of several
/// new rows for one row, the last wins. In addition to the copy, takes 2 bytes per change and 8 per tile
/// between the first change and the last; and as much as 8 bytes per change while it is made.
class RowChanges {
 public:
  /// Groups the changes of a table with these bins; change i overwrites row indices[i] by the i-th of
  /// `new_rows`. Throws Error(index) for an index outside the table.
  RowChanges(std::span<const std::uint64_t> indices, const std::uint8_t* new_rows,
             std::size_t row_bytes, const Bins& bins, ThreadPool& pool);

  /// Returns the number of changes.
  std::size_t size() const { return changed_.size(); }
  /// Returns the bins of the table, and the bytes of its rows.
  const Bins& bins() const { return bins_; }
  std::size_t row_bytes() const { return row_bytes_; }
  /// Returns the changes of a tile.
  TileChanges in_tile(std::uint64_t tile) const;

  struct Range {
    std::uint64_t first;
    std::uint64_t end;
  };
  /// Returns the tiles from the first that changes to the last.
  Range tiles() const { return {first_tile_, first_tile_ + tile_count()}; }

 private:
  std::uint64_t tile_count() const { return starts_.size() == 0 ? 0 : starts_.size() - 1; }
  template <class Tiling>
  void sort(std::span<const std::uint64_t> indices, const std::uint8_t* new_rows, ThreadPool& pool,
            Tiling tiling);

  Bins bins_;
  std::size_t row_bytes_;
  std::uint64_t first_tile_ = 0;
  Buffer<std::uint16_t> changed_;
  Buffer<std::uint8_t> new_rows_;
  Buffer<std::uint64_t> starts_;  // of the tiles from first_tile_ on, and the end of the last
};

}  // namespace nescio::pir
