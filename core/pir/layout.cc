#include "pir/layout.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/math.h"
#include "pir/row_bytes.h"
#include "pir/slicer.h"

namespace nescio::pir {
namespace {

/// Bytes of rows per task: smaller tasks cost more than their work.
constexpr std::uint64_t kTaskBytes = 64 << 10;

/// The offsets of the eight bytes that hold eight columns of a row, and the row's bit in each.
struct RowBits {
  RowBits(const Extent& extent, std::uint64_t row)
      : tile(extent.offset(row - row % kTileRows)),
        block_bytes(extent.lines(row - row % kTileRows) * kLineBytes),
        line(row % kTileRows / kGroupRows * kLineBytes),
        bit(static_cast<unsigned>(row % kGroupRows)) {}

  std::size_t at(std::size_t byte) const {
    return tile + byte / kBlockColumnBytes * block_bytes + line + byte % kBlockColumnBytes * 8;
  }

  std::size_t tile, block_bytes, line;
  unsigned bit;
};

void check_index(const Extent& extent, std::uint64_t index) {
  if (index < extent.rows) return;
  throw Error(ErrorKind::index, "row " + std::to_string(index) + " is outside the table of " +
                                    std::to_string(extent.rows) + " rows");
}

/// Calls `tile(first row, rows)` for each tile of rows first..first+count-1.
template <class Tile>
void for_each_tile(const Extent& extent, std::uint64_t first, std::uint64_t count, ThreadPool& pool,
                   Tile tile) {
  if (first > extent.rows || count > extent.rows - first || first % kTileRows != 0) {
    throw Error(ErrorKind::index, "rows " + std::to_string(first) + " to " +
                                      std::to_string(first + count) + " are outside the table of " +
                                      std::to_string(extent.rows) + " rows");
  }
  const std::uint64_t tiles = ceil_div(count, kTileRows);
  const std::uint64_t per_task =
      std::max<std::uint64_t>(1, kTaskBytes / kTileRows / extent.row_bytes);
  pool.run(ceil_div(tiles, per_task), [&](std::size_t task, unsigned) {
    const std::uint64_t end = std::min(tiles, (task + 1) * per_task);
    for (std::uint64_t i = task * per_task; i < end; ++i) {
      tile(first + i * kTileRows, std::min<std::uint64_t>(kTileRows, count - i * kTileRows));
    }
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

void check_changes(const Extent& extent, const RowChanges& changes) {
  if (changes.rows() == extent.rows && changes.row_bytes() == extent.row_bytes) return;
  const auto shown = [](std::uint64_t rows, std::size_t bytes) {
    return std::to_string(rows) + " rows of " + std::to_string(bytes) + " bytes";
  };
  throw Error(ErrorKind::argument, "changes of a table: found one of " +
                                       shown(changes.rows(), changes.row_bytes()) + ", expected " +
                                       shown(extent.rows, extent.row_bytes));
}

}  // namespace

Layout layout_for(dpf::Output output) noexcept {
  return output == dpf::Output::bit ? Layout::sliced : Layout::rows;
}

std::size_t Extent::bytes() const {
  constexpr std::uint64_t kMax = std::uint64_t{1} << 62;
  // A line of a block holds eight bytes of eight rows, so the last tile is padded to whole lines.
  const std::uint64_t rest = rows % kTileRows;
  const std::uint64_t padded = rest == 0 ? rows : rows - rest + lines(rows - rest) * kGroupRows;
  const std::uint64_t units = layout == Layout::sliced ? padded : rows;
  const std::uint64_t unit = layout == Layout::sliced ? blocks() * kBlockColumnBytes : row_bytes;
  if (rows == 0 || row_bytes == 0 || rows > kMax || row_bytes > kMax || units > kMax / unit) {
    throw Error(ErrorKind::argument, "invalid table size: " + std::to_string(rows) + " rows of " +
                                         std::to_string(row_bytes) + " bytes");
  }
  return units * unit;
}

void store_rows(const Extent& extent, const std::uint8_t* rows, std::uint64_t first,
                std::uint64_t count, std::uint8_t* table, ThreadPool& pool, Tier tier) {
  const Slicer& slicer = NESCIO_PICK(tier, kSlicer);
  for_each_tile(extent, first, count, pool, [&](std::uint64_t at, std::size_t present) {
    const std::uint8_t* from = rows + (at - first) * extent.row_bytes;
    std::uint8_t* tile = table + extent.offset(at);
    if (extent.layout == Layout::rows) {
      std::memcpy(tile, from, present * extent.row_bytes);
    } else {
      slicer.slice(from, present, extent.row_bytes, extent.lines(at), tile);
    }
  });
}

void load_range(const Extent& extent, const std::uint8_t* table, std::uint64_t first,
                std::uint64_t count, std::uint8_t* rows, ThreadPool& pool, Tier tier) {
  const Slicer& slicer = NESCIO_PICK(tier, kSlicer);
  for_each_tile(extent, first, count, pool, [&](std::uint64_t at, std::size_t present) {
    std::uint8_t* to = rows + (at - first) * extent.row_bytes;
    const std::uint8_t* tile = table + extent.offset(at);
    if (extent.layout == Layout::rows) {
      std::memcpy(to, tile, present * extent.row_bytes);
    } else {
      slicer.unslice(tile, extent.lines(at), present, extent.row_bytes, to);
    }
  });
}

void load_rows(const Extent& extent, const std::uint8_t* table,
               std::span<const std::uint64_t> indices, std::uint8_t* rows) {
  for (std::uint64_t index : indices) {
    check_index(extent, index);
    if (extent.layout == Layout::rows) {
      std::memcpy(rows, table + index * extent.row_bytes, extent.row_bytes);
    } else {
      const RowBits from(extent, index);
      for (std::size_t byte = 0; byte < extent.row_bytes; ++byte) {
        std::uint64_t columns;
        std::memcpy(&columns, table + from.at(byte), sizeof(columns));
        rows[byte] = pack_bits(columns >> from.bit);
      }
    }
    rows += extent.row_bytes;
  }
}

void replace_rows(const Extent& extent, const RowChanges& changes, std::uint8_t* table,
                  ThreadPool& pool, Tier tier) {
  check_changes(extent, changes);
  const Slicer& slicer = NESCIO_PICK(tier, kSlicer);
  const auto [first, end] = changes.range();
  for_each_tile(extent, first, end - first, pool, [&](std::uint64_t at, std::size_t) {
    const TileChanges own = changes.in_tile(at / kTileRows);
    std::uint8_t* tile = table + extent.offset(at);
    if (extent.layout == Layout::rows) return overwrite_rows(own, extent.row_bytes, tile);
    for (const std::uint16_t row : changes.in_tile(at / kTileRows + 1).rows) {
      __builtin_prefetch(tile + extent.tile_bytes() + row / kGroupRows * kLineBytes, 1);
    }
    slicer.overwrite(own.rows.data(), own.rows.size(), own.bytes, extent.row_bytes,
                     extent.lines(at), tile);
  });
}

}  // namespace nescio::pir
