#include "pir/layout.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/math.h"
#include "pir/row_bytes.h"
#include "pir/slicer.h"

namespace nescio::pir {
namespace {

/// Bytes of rows per task: smaller tasks cost more than their work.
constexpr std::uint64_t kTaskBytes = 64 << 10;

Error outside(const std::string& what, const TableExtent& extent) {
  const std::string table = "the table of " + std::to_string(extent.rows()) + " rows";
  const auto& [first, count] = extent.window();
  if (count == extent.rows()) return Error(ErrorKind::index, what + " outside " + table);
  return Error(ErrorKind::index, what + " outside rows " + std::to_string(first) + " to " +
                                     std::to_string(first + count) + " of " + table);
}

/// Returns the number of a place's row in the memory of its bin.
std::uint64_t row_in_memory(const TableExtent& extent, const Bins::Place& at) {
  return at.row - extent.window().first;  // a table in bins has no window, which begins with row 0
}

/// A tile of a table, and the rows of it that a call is about.
struct TileRows {
  std::size_t offset;   ///< of the tile
  std::size_t lines;    ///< of each of its blocks
  std::uint64_t first;  ///< number of its first row
  std::uint64_t count;
};

/// Calls `use(tile number, tile)` for tiles first..end-1.
template <class Use>
void for_each_tile(const TableExtent& extent, std::uint64_t first, std::uint64_t end,
                   ThreadPool& pool, Use use) {
  const Bins& bins = extent.bins();
  const std::uint64_t per_task =
      std::max<std::uint64_t>(1, kTaskBytes / kTileRows / extent.row_bytes());
  pool.run(ceil_div(end - first, per_task), [&](std::size_t task, unsigned) {
    const std::uint64_t task_first = first + task * per_task;
    const std::uint64_t task_end = std::min(end, task_first + per_task);
    for (std::uint64_t i = task_first; i < task_end; ++i) {
      const Bins::Place at = bins.tile(i);
      const Extent own = extent.extent(at.group);
      const std::uint64_t row = row_in_memory(extent, at);
      use(i, TileRows{extent.offset(at.group, at.bin) + own.offset(row), own.lines(row),
                      bins.row(at), std::min<std::uint64_t>(kTileRows, own.rows - row)});
    }
  });
}

/// Calls `use(tile)` for the tiles of rows first..first+count-1.
template <class Use>
void for_each_tile_of(const TableExtent& extent, std::uint64_t first, std::uint64_t count,
                      ThreadPool& pool, Use use) {
  const Bins& bins = extent.bins();
  const bool inside = extent.window().holds({first, count});
  if (inside && count == 0) return;
  if (!inside || bins.place(first).row % kTileRows != 0) {
    throw outside("rows " + std::to_string(first) + " to " + std::to_string(first + count) + " are",
                  extent);
  }
  const std::uint64_t last = bins.tile_of(bins.place(first + count - 1));
  for_each_tile(extent, bins.tile_of(bins.place(first)), last + 1, pool,
                [&](std::uint64_t, TileRows tile) {
                  tile.count = std::min(tile.count, first + count - tile.first);
                  use(tile);
                });
}

/// Overwrites rows of a tile that are one after the other.
void overwrite_rows(const TileChanges& changes, std::size_t row_bytes, std::uint8_t* rows) {
  with_row_bytes(row_bytes, [&](auto bytes) {
    for (std::size_t i = 0; i < changes.rows.size(); ++i) {
      std::memcpy(rows + changes.rows[i] * bytes, changes.bytes + i * bytes, bytes);
    }
  });
}

void check_changes(const TableExtent& extent, const RowChanges& changes) {
  if (changes.bins() == extent.bins() && changes.row_bytes() == extent.row_bytes()) return;
  const auto shown = [](const Bins& bins, std::size_t bytes) {
    std::string text = std::to_string(bins.rows()) + " rows of " + std::to_string(bytes) + " bytes";
    return bins.one() ? text : text + " in bins";
  };
  throw Error(ErrorKind::argument, "changes of a table: found one of " +
                                       shown(changes.bins(), changes.row_bytes()) + ", expected " +
                                       shown(extent.bins(), extent.row_bytes()));
}

/// Throws Error(index) for tiles that are not in memory.
void check_tiles(const TableExtent& extent, std::uint64_t first, std::uint64_t end) {
  if (!extent.bins().one() || first == end) return;
  const RowRange rows = {first * kTileRows, (end - first - 1) * kTileRows + 1};
  if (extent.window().holds(rows)) return;
  throw outside("changed rows from " + std::to_string(rows.first) + " on are", extent);
}

/// The tile of a row, and the row's number in it.
struct RowTile {
  RowTile(const TableExtent& extent, std::uint64_t index) {
    const Bins::Place at = extent.bins().place(index);
    const Extent own = extent.extent(at.group);
    row = at.row % kTileRows;
    const std::uint64_t first = row_in_memory(extent, at) - row;
    offset = extent.offset(at.group, at.bin) + own.offset(first);
    lines = own.lines(first);
  }

  std::size_t offset, lines, row;
};

/// Rows ahead that `load_rows` fetches, and the most rows of the next tile that `replace_rows` does.
constexpr std::size_t kRowsAhead = 2;
constexpr std::size_t kPrefetchedRows = 8;

/// Fetches the lines of some rows of a tile to the second-level cache: those of one row share a set of
/// the first. Without this, each line of a table that is larger than the caches is waited for.
void prefetch(std::span<const std::uint16_t> rows, std::size_t lines, std::size_t blocks,
              const std::uint8_t* tile) {
  for (const std::uint16_t row : rows) {
    const std::uint8_t* line = tile + row / kGroupRows * kLineBytes;
    for (std::size_t block = 0; block < blocks; ++block, line += lines * kLineBytes) {
      __builtin_prefetch(line, 0, 2);
    }
  }
}

void prefetch_row(const TableExtent& extent, const std::uint8_t* table, std::uint64_t index) {
  const RowTile at(extent, index);
  const std::array row = {static_cast<std::uint16_t>(at.row)};
  prefetch(row, at.lines, block_count(extent.row_bytes()), table + at.offset);
}

Error invalid_size(std::uint64_t rows, std::size_t row_bytes) {
  return Error(ErrorKind::argument, "invalid table size: " + std::to_string(rows) + " rows of " +
                                        std::to_string(row_bytes) + " bytes");
}

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 62;

void check_window(const Bins& bins, const RowRange& window) {
  const bool inside = RowRange{0, bins.rows()}.holds(window) && window.count > 0;
  if (bins.one() && inside && window.first % kTileRows == 0) return;
  throw Error(ErrorKind::argument, "window: found rows " + std::to_string(window.first) + " to " +
                                       std::to_string(window.end()) +
                                       ", expected some rows of a table of one bin of " +
                                       std::to_string(bins.rows()) + " rows, from a multiple of " +
                                       std::to_string(kTileRows) + " on");
}

}  // namespace

Layout layout_for(dpf::Output output) noexcept {
  return output == dpf::Output::bit ? Layout::sliced : Layout::rows;
}

std::size_t Extent::bytes() const {
  // A line of a block holds eight bytes of eight rows, so the last tile is padded to whole lines.
  const std::uint64_t rest = rows % kTileRows;
  const std::uint64_t padded = rest == 0 ? rows : rows - rest + lines(rows - rest) * kGroupRows;
  const std::uint64_t units = layout == Layout::sliced ? padded : rows;
  const std::uint64_t unit = layout == Layout::sliced ? blocks() * kBlockColumnBytes : row_bytes;
  if (rows == 0 || row_bytes == 0 || rows > kMaxBytes || row_bytes > kMaxBytes ||
      units > kMaxBytes / unit) {
    throw invalid_size(rows, row_bytes);
  }
  return units * unit;
}

TableExtent::TableExtent(Bins bins, std::size_t row_bytes, dpf::Output output,
                         std::optional<RowRange> window)
    : bins_(std::move(bins)),
      row_bytes_(row_bytes),
      output_(output),
      window_(window.value_or(RowRange{0, bins_.rows()})) {
  if (window) check_window(bins_, *window);
  for (std::size_t i = 0; i < bins_.groups().size(); ++i) {
    const std::size_t bin_bytes = extent(i).bytes();
    if (bins_.groups()[i].count > (kMaxBytes - bytes_) / bin_bytes) {
      throw invalid_size(bins_.rows(), row_bytes_);
    }
    groups_.push_back({bytes_, bin_bytes});
    bytes_ += bins_.groups()[i].count * bin_bytes;
  }
}

void store_rows(const TableExtent& extent, const std::uint8_t* rows, std::uint64_t first,
                std::uint64_t count, std::uint8_t* table, ThreadPool& pool, Tier tier) {
  const Slicer& slicer = NESCIO_PICK(tier, kSlicer);
  const std::size_t row_bytes = extent.row_bytes();
  for_each_tile_of(extent, first, count, pool, [&](const TileRows& tile) {
    const std::uint8_t* from = rows + (tile.first - first) * row_bytes;
    if (extent.layout() == Layout::rows) {
      std::memcpy(table + tile.offset, from, tile.count * row_bytes);
    } else {
      slicer.slice(from, tile.count, row_bytes, tile.lines, table + tile.offset);
    }
  });
}

void load_range(const TableExtent& extent, const std::uint8_t* table, std::uint64_t first,
                std::uint64_t count, std::uint8_t* rows, ThreadPool& pool, Tier tier) {
  const Slicer& slicer = NESCIO_PICK(tier, kSlicer);
  const std::size_t row_bytes = extent.row_bytes();
  for_each_tile_of(extent, first, count, pool, [&](const TileRows& tile) {
    std::uint8_t* to = rows + (tile.first - first) * row_bytes;
    if (extent.layout() == Layout::rows) {
      std::memcpy(to, table + tile.offset, tile.count * row_bytes);
    } else {
      slicer.unslice(table + tile.offset, tile.lines, tile.count, row_bytes, to);
    }
  });
}

void load_rows(const TableExtent& extent, const std::uint8_t* table,
               std::span<const std::uint64_t> indices, std::uint8_t* rows, Tier tier) {
  for (const std::uint64_t index : indices) {
    if (!extent.window().holds({index, 1})) {
      throw outside("row " + std::to_string(index) + " is", extent);
    }
  }
  const Slicer& slicer = NESCIO_PICK(tier, kSlicer);
  const std::size_t row_bytes = extent.row_bytes();
  for (std::size_t i = 0; i < indices.size(); ++i, rows += row_bytes) {
    if (extent.layout() == Layout::rows) {
      const Bins::Place at = extent.bins().place(indices[i]);
      const std::uint64_t row = row_in_memory(extent, at);
      std::memcpy(rows, table + extent.offset(at.group, at.bin) + row * row_bytes, row_bytes);
      continue;
    }
    if (i + kRowsAhead < indices.size()) prefetch_row(extent, table, indices[i + kRowsAhead]);
    const RowTile at(extent, indices[i]);
    slicer.unslice_row(table + at.offset, at.lines, at.row, row_bytes, rows);
  }
}

void replace_rows(const TableExtent& extent, const RowChanges& changes, std::uint8_t* table,
                  ThreadPool& pool, Tier tier) {
  check_changes(extent, changes);
  const Slicer& slicer = NESCIO_PICK(tier, kSlicer);
  const std::size_t row_bytes = extent.row_bytes();
  const auto [first, end] = changes.tiles();
  check_tiles(extent, first, end);
  for_each_tile(extent, first, end, pool, [&](std::uint64_t number, const TileRows& at) {
    const TileChanges own = changes.in_tile(number);
    std::uint8_t* tile = table + at.offset;
    if (extent.layout() == Layout::rows) return overwrite_rows(own, row_bytes, tile);
    const TileChanges next = changes.in_tile(number + 1);
    prefetch(next.rows.first(std::min(next.rows.size(), kPrefetchedRows)), at.lines,
             block_count(row_bytes), tile + block_count(row_bytes) * at.lines * kLineBytes);
    slicer.overwrite(own.rows.data(), own.rows.size(), own.bytes, row_bytes, at.lines, tile);
  });
}

}  // namespace nescio::pir
