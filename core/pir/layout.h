#pragma once

// How a table stands in memory.
//
// Rows: one after the other, as they came, for additive outputs. Sliced, for outputs of one bit:
// see sliced.h.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "dpf/output.h"
#include "pir/sliced.h"

namespace nescio::pir {

/// The layout that a table has for keys of an output.
enum class Layout : std::uint8_t { rows, sliced };
Layout layout_for(dpf::Output output) noexcept;

/// The size of a table and of what it stands in.
struct Extent {
  std::uint64_t rows;
  std::size_t row_bytes;
  Layout layout;

  std::size_t blocks() const { return block_count(row_bytes); }
  std::size_t tile_bytes() const { return blocks() * kBlockBytes; }
  /// Lines of each block of the tile that begins at a row: all, or what the last tile needs.
  std::size_t lines(std::uint64_t row) const {
    const std::uint64_t left = rows - row;
    return left >= kTileRows ? kLines : (left + 2 * kGroupRows - 1) / (2 * kGroupRows) * 2;
  }
  /// Bytes of the whole table as it stands. Throws Error(argument) for a table without rows or bytes,
  /// or that no address space holds.
  std::size_t bytes() const;
};

/// Puts `count` rows, the first of which is row `first` (a multiple of kTileRows), into `table`;
/// the rest of their last tile becomes zero. Throws Error(index) if the table has no such rows.
void store_rows(const Extent& extent, const std::uint8_t* rows, std::uint64_t first,
                std::uint64_t count, std::uint8_t* table, ThreadPool& pool);

/// The `count` rows from row `first` (a multiple of kTileRows) on, one after the other. Throws
/// Error(index) if the table has no such rows.
void load_range(const Extent& extent, const std::uint8_t* table, std::uint64_t first,
                std::uint64_t count, std::uint8_t* rows, ThreadPool& pool);

/// The rows at `indices`, one after the other. Throws Error(index) for one that there is not.
void load_rows(const Extent& extent, const std::uint8_t* table,
               std::span<const std::uint64_t> indices, std::uint8_t* rows);

/// Overwrites the rows at `indices`; of two with one index the later one stays. Throws Error(index)
/// for one that there is not, before anything is written.
void replace_rows(const Extent& extent, std::span<const std::uint64_t> indices,
                  const std::uint8_t* rows, std::uint8_t* table);

}  // namespace nescio::pir
