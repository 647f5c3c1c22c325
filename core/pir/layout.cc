#include "pir/layout.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include "base/error.h"
#include "base/math.h"

namespace nescio::pir {
namespace {

/// Bytes of rows per task: smaller tasks cost more than their work.
constexpr std::uint64_t kTaskBytes = 64 << 10;

/// Overwritten rows whose first lines are prefetched: each line of a sliced row is another cache line.
constexpr std::size_t kRowsAhead = 16;
constexpr std::size_t kBytesAhead = 64;

/// Copies `bytes` bytes (1 to 8) between words and rows, `stride` apart; `copy(word, row)` gets a
/// constant number of bytes, which is one move or two.
template <std::size_t bytes = 8, class Copy>
void for_each_row(std::size_t count, std::size_t stride, std::size_t present, Copy copy) {
  if (present < bytes) {
    if constexpr (bytes > 1) for_each_row<bytes - 1>(count, stride, present, copy);
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    copy(i, i * stride, std::integral_constant<std::size_t, bytes>{});
  }
}

/// Makes a line of a block from `bytes` bytes (at most 8) of each of up to eight rows, `stride` apart.
void slice_line(const std::uint8_t* rows, std::size_t count, std::size_t stride, std::size_t bytes,
                std::uint8_t* line) {
  std::uint64_t words[kGroupRows] = {};
  for_each_row(count, stride, bytes, [&](std::size_t i, std::size_t at, auto size) {
    std::memcpy(&words[i], rows + at, size);
  });
  slice_words(words);
  std::memcpy(line, words, kLineBytes);
}

/// The inverse of slice_line.
void unslice_line(const std::uint8_t* line, std::size_t count, std::size_t stride,
                  std::size_t bytes, std::uint8_t* rows) {
  std::uint64_t words[kGroupRows];
  std::memcpy(words, line, kLineBytes);
  unslice_words(words);
  for_each_row(count, stride, bytes, [&](std::size_t i, std::size_t at, auto size) {
    std::memcpy(rows + at, &words[i], size);
  });
}

/// Calls `line(offset in rows, rows present, bytes, offset in tile)` for each line of the tile that
/// begins with row `first` and has `count` rows.
template <class Line>
void for_each_line(const Extent& extent, std::uint64_t first, std::size_t count, Line line) {
  const std::size_t tile_rows = extent.lines(first) * kGroupRows;
  std::size_t at = 0;
  for (std::size_t block = 0; block < extent.blocks(); ++block) {
    const std::size_t from = block * kBlockColumnBytes;
    const std::size_t bytes = std::min(kBlockColumnBytes, extent.row_bytes - from);
    for (std::size_t row = 0; row < tile_rows; row += kGroupRows, at += kLineBytes) {
      const std::size_t present = std::min(kGroupRows, count - std::min(count, row));
      line(row * extent.row_bytes + from, present, bytes, at);
    }
  }
}

/// The offsets of the eight bytes that hold eight columns of a row, and the row's bit in each.
struct RowBits {
  RowBits(const Extent& extent, std::uint64_t row)
      : tile(row / kTileRows * extent.tile_bytes()),
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
                std::uint64_t count, std::uint8_t* table, ThreadPool& pool) {
  for_each_tile(extent, first, count, pool, [&](std::uint64_t at, std::size_t present) {
    const std::uint8_t* from = rows + (at - first) * extent.row_bytes;
    if (extent.layout == Layout::rows) {
      std::memcpy(table + at * extent.row_bytes, from, present * extent.row_bytes);
      return;
    }
    std::uint8_t* tile = table + at / kTileRows * extent.tile_bytes();
    for_each_line(extent, at, present,
                  [&](std::size_t row, std::size_t n, std::size_t bytes, std::size_t line) {
                    slice_line(from + row, n, extent.row_bytes, bytes, tile + line);
                  });
  });
}

void load_range(const Extent& extent, const std::uint8_t* table, std::uint64_t first,
                std::uint64_t count, std::uint8_t* rows, ThreadPool& pool) {
  for_each_tile(extent, first, count, pool, [&](std::uint64_t at, std::size_t present) {
    std::uint8_t* to = rows + (at - first) * extent.row_bytes;
    if (extent.layout == Layout::rows) {
      std::memcpy(to, table + at * extent.row_bytes, present * extent.row_bytes);
      return;
    }
    const std::uint8_t* tile = table + at / kTileRows * extent.tile_bytes();
    for_each_line(extent, at, present,
                  [&](std::size_t row, std::size_t n, std::size_t bytes, std::size_t line) {
                    unslice_line(tile + line, n, extent.row_bytes, bytes, to + row);
                  });
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

void replace_rows(const Extent& extent, std::span<const std::uint64_t> indices,
                  const std::uint8_t* rows, std::uint8_t* table) {
  for (std::uint64_t index : indices) check_index(extent, index);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (extent.layout == Layout::rows) {
      std::memcpy(table + indices[i] * extent.row_bytes, rows, extent.row_bytes);
    } else {
      if (i + kRowsAhead < indices.size()) {
        const RowBits ahead(extent, indices[i + kRowsAhead]);
        const std::size_t bytes = std::min(extent.row_bytes, kBytesAhead);
        for (std::size_t byte = 0; byte < bytes; byte += kBlockColumnBytes) {
          __builtin_prefetch(table + ahead.at(byte), 1);
        }
      }
      const RowBits to(extent, indices[i]);
      for (std::size_t byte = 0; byte < extent.row_bytes; ++byte) {
        std::uint64_t columns;
        std::memcpy(&columns, table + to.at(byte), sizeof(columns));
        const std::uint64_t bits = transpose_bits(rows[byte]) << to.bit;
        columns = (columns & ~(0x0101010101010101ull << to.bit)) | bits;
        std::memcpy(table + to.at(byte), &columns, sizeof(columns));
      }
    }
    rows += extent.row_bytes;
  }
}

}  // namespace nescio::pir
