#include "pir/row_changes.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/math.h"
#include "pir/row_bytes.h"

namespace nescio::pir {
namespace {

/// Minimum indices that a thread sorts: fewer cost less than starting it.
constexpr std::size_t kSliceIndices = 32 << 10;

Buffer<std::uint64_t> zeros(std::size_t size) {
  Buffer<std::uint64_t> buffer(size);
  std::fill_n(buffer.data(), size, 0);
  return buffer;
}

/// A row's tile, and the row in it.
struct TileRow {
  std::uint64_t tile;
  std::uint64_t row;
};

/// The tiles of a table that is not cut.
struct OneBin {
  TileRow operator()(std::uint64_t index) const { return {index / kTileRows, index % kTileRows}; }
};

/// The tiles of any table; they increase with the rows.
struct ManyBins {
  const Bins& bins;
  TileRow operator()(std::uint64_t index) const {
    const Bins::Place at = bins.place(index);
    return {bins.tile_of(at), at.row % kTileRows};
  }
};

struct Limits {
  std::uint64_t low;
  std::uint64_t high;
};

/// Returns the lowest and the highest index. Throws Error(index) for one outside the table.
Limits limits_of(std::span<const std::uint64_t> indices, std::uint64_t rows) {
  std::uint64_t low = indices[0], high = indices[0];
  for (const std::uint64_t index : indices) {
    low = std::min(low, index);
    high = std::max(high, index);
  }
  if (high < rows) return {low, high};
  throw Error(ErrorKind::index, "row " + std::to_string(high) + " is outside the table of " +
                                    std::to_string(rows) + " rows");
}

/// Makes the counts of each tile in each slice the positions of their first changes, and returns the
/// positions of the tiles.
Buffer<std::uint64_t> add_up(Buffer<std::uint64_t>& counts, std::uint64_t tiles) {
  Buffer<std::uint64_t> starts(tiles + 1);
  std::uint64_t sum = 0;
  for (std::uint64_t tile = 0; tile < tiles; ++tile) {
    starts[tile] = sum;
    for (std::size_t i = tile; i < counts.size(); i += tiles) {
      const std::uint64_t count = counts[i];
      counts[i] = sum;
      sum += count;
    }
  }
  starts[tiles] = sum;
  return starts;
}

}  // namespace

RowChanges::RowChanges(std::span<const std::uint64_t> indices, const std::uint8_t* new_rows,
                       std::size_t row_bytes, const Bins& bins, ThreadPool& pool)
    : bins_(bins),
      row_bytes_(row_bytes),
      changed_(indices.size()),
      new_rows_(checked_product(indices.size(), row_bytes)) {
  if (indices.empty()) return;
  if (bins_.one()) {
    sort(indices, new_rows, pool, OneBin{});
  } else {
    sort(indices, new_rows, pool, ManyBins{bins_});
  }
}

// A stable counting sort by tile. Each slice of the indices has counts of its own, so that threads do
// not share them; together they take no more memory than the changes.
template <class Tiling>
void RowChanges::sort(std::span<const std::uint64_t> indices, const std::uint8_t* new_rows,
                      ThreadPool& pool, Tiling tiling) {
  const Limits limits = limits_of(indices, bins_.rows());
  first_tile_ = tiling(limits.low).tile;
  const std::uint64_t tiles = tiling(limits.high).tile - first_tile_ + 1;
  const std::size_t most = indices.size() / std::max<std::uint64_t>(kSliceIndices, tiles);
  const std::size_t slices = std::clamp<std::size_t>(most, 1, pool.threads());
  const std::size_t slice = ceil_div(indices.size(), slices);
  Buffer<std::uint64_t> counts = zeros(checked_product(slices, tiles));

  const auto for_each = [&](auto use) {
    pool.run(slices, [&](std::size_t task, unsigned) {
      const std::uint64_t first = first_tile_;
      std::uint64_t* own = &counts[task * tiles];
      const std::size_t end = std::min(indices.size(), (task + 1) * slice);
      for (std::size_t i = task * slice; i < end; ++i) {
        const TileRow at = tiling(indices[i]);
        use(i, at.row, own[at.tile - first]++);
      }
    });
  };
  for_each([](std::size_t, std::uint64_t, std::uint64_t) {});
  starts_ = add_up(counts, tiles);
  with_row_bytes(row_bytes_, [&](auto bytes) {
    std::uint16_t* changed = changed_.data();
    std::uint8_t* copies = new_rows_.data();
    for_each([=](std::size_t i, std::uint64_t row, std::uint64_t at) {
      changed[at] = static_cast<std::uint16_t>(row);
      std::memcpy(copies + at * bytes, new_rows + i * bytes, bytes);
    });
  });
}

TileChanges RowChanges::in_tile(std::uint64_t tile) const {
  if (tile < first_tile_ || tile - first_tile_ >= tile_count()) return {};
  const std::uint64_t begin = starts_[tile - first_tile_];
  const std::uint64_t count = starts_[tile - first_tile_ + 1] - begin;
  return {{changed_.data() + begin, count}, new_rows_.data() + begin * row_bytes_};
}

}  // namespace nescio::pir
