#pragma once

// The layouts of a table in memory.
//
// Rows, for additive outputs: one row after the other. Sliced, for outputs of one bit: see sliced.h.
// Bins follow each other, and each is laid out like a table of its own.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "dpf/output.h"
#include "pir/bins.h"
#include "pir/row_changes.h"
#include "pir/sliced.h"

namespace nescio::pir {

/// The layout of a table, which depends on the output of its keys.
enum class Layout : std::uint8_t { rows, sliced };
Layout layout_for(dpf::Output output) noexcept;

/// The size and layout of one bin.
struct Extent {
  std::uint64_t rows;
  std::size_t row_bytes;
  Layout layout;

  std::size_t blocks() const { return block_count(row_bytes); }
  std::size_t tile_bytes() const { return blocks() * kBlockBytes; }
  /// Returns the offset of the tile that begins at a row.
  std::size_t offset(std::uint64_t row) const {
    return layout == Layout::sliced ? row / kTileRows * tile_bytes() : row * row_bytes;
  }
  /// Returns the lines of each block of the tile that begins at a row; the last tile may have fewer.
  std::size_t lines(std::uint64_t row) const {
    const std::uint64_t left = rows - row;
    return left >= kTileRows ? kLines : (left + 2 * kGroupRows - 1) / (2 * kGroupRows) * 2;
  }
  /// Returns the bytes of the bin in its layout. Throws Error(argument) for a bin without rows or
  /// bytes, or larger than the address space.
  std::size_t bytes() const;
};

/// Rows first..first+count-1 of a table.
struct RowRange {
  std::uint64_t first, count;

  std::uint64_t end() const { return first + count; }
  bool holds(const RowRange& other) const {
    return first <= other.first && other.first <= end() && other.count <= end() - other.first;
  }
  friend bool operator==(const RowRange&, const RowRange&) = default;
};

/// The size and layout of a table.
///
/// A window is the part of a table that is in memory, if that is not the whole table. It begins a tile of a
/// table that is one bin. Rows keep their numbers, and keys are those to the whole table. Answers of windows
/// that together have every row once add up to the answer of the table.
class TableExtent {
 public:
  /// Throws Error(argument) for rows without bytes, a table larger than the address space, or a window of
  /// no rows, of a table in bins, outside the table or that begins within a tile.
  TableExtent(Bins bins, std::size_t row_bytes, dpf::Output output,
              std::optional<RowRange> window = std::nullopt);

  const Bins& bins() const { return bins_; }
  std::uint64_t rows() const { return bins_.rows(); }
  /// Returns the rows in memory.
  const RowRange& window() const { return window_; }
  std::size_t row_bytes() const { return row_bytes_; }
  dpf::Output output() const { return output_; }
  Layout layout() const { return layout_for(output_); }
  std::size_t bytes() const { return bytes_; }

  /// Returns true for tables of one size, of which each may have a window.
  bool same_table(const TableExtent& other) const {
    return bins_ == other.bins_ && row_bytes_ == other.row_bytes_ && output_ == other.output_;
  }
  friend bool operator==(const TableExtent& a, const TableExtent& b) {
    return a.same_table(b) && a.window_ == b.window_;
  }

  /// Returns the extent of each bin of a group, or of the window.
  Extent extent(std::size_t group) const {
    return {bins_.one() ? window_.count : bins_.groups()[group].rows, row_bytes_, layout()};
  }
  /// Returns the offset of a bin, and the bytes of each bin of its group.
  std::size_t offset(std::size_t group, std::uint64_t bin) const {
    return groups_[group].offset + bin * groups_[group].bin_bytes;
  }
  std::size_t bin_bytes(std::size_t group) const { return groups_[group].bin_bytes; }

 private:
  struct Group {
    std::size_t offset, bin_bytes;
  };

  Bins bins_;
  std::size_t row_bytes_;
  dpf::Output output_;
  RowRange window_;
  std::vector<Group> groups_;
  std::size_t bytes_ = 0;
};

/// Stores `count` rows in `table`, beginning with row `first`, which begins a tile of its bin. The rest of
/// the last tile becomes zero. Throws Error(index) if they are not in memory.
void store_rows(const TableExtent& extent, const std::uint8_t* rows, std::uint64_t first,
                std::uint64_t count, std::uint8_t* table, ThreadPool& pool, Tier tier);

/// Loads `count` rows, beginning with row `first`, which begins a tile of its bin. Throws Error(index) if
/// they are not in memory.
void load_range(const TableExtent& extent, const std::uint8_t* table, std::uint64_t first,
                std::uint64_t count, std::uint8_t* rows, ThreadPool& pool, Tier tier);

/// Loads the rows at `indices`. Throws Error(index) for a row that is not in memory.
void load_rows(const TableExtent& extent, const std::uint8_t* table,
               std::span<const std::uint64_t> indices, std::uint8_t* rows, Tier tier);

/// Applies changes. Throws Error(argument) for changes of a table of another size, and Error(index) for a
/// tile that is not in memory.
void replace_rows(const TableExtent& extent, const RowChanges& changes, std::uint8_t* table,
                  ThreadPool& pool, Tier tier);

}  // namespace nescio::pir
