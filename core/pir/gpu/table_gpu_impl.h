// The part of pir/gpu/answer_gpu.h that stores rows, included once for each device.

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "pir/gpu/answer_gpu.h"
#include "pir/gpu/table_gpu.h"
#include "pir/layout.h"

namespace nescio::pir {

template <gpu::ComputeDevice Device>
GpuTable<Device>::GpuTable(unsigned device, const TableExtent& extent, const GpuShard& shard)
    : number_(device),
      device_(device),
      info_(Device::info(device)),
      extent_(extent),
      shard_(shard) {
  const bool inside = shard.rows > 0 && shard.rows <= extent.rows() &&
                      shard.first_row <= extent.rows() - shard.rows;
  if (!inside || extent.bins().place(shard.first_row).row % kTileRows != 0) {
    throw Error(ErrorKind::argument,
                std::to_string(shard.rows) + " rows from row " + std::to_string(shard.first_row) +
                    " are not part of a table of " + std::to_string(extent.rows()) + " rows");
  }
  const dpf::LineShape shape(extent.output());
  table_ = {nullptr, shape, 0, static_cast<std::uint32_t>(extent.row_bytes()),
            static_cast<std::uint32_t>(LineTable::columns_for(shape, extent.row_bytes()))};
  std::uint64_t row = 0, chunks = 0;
  for (const BinPart& bins : extent.bins().parts(shard.first_row, shard.rows)) {
    pieces_.push_back({bins, row, chunks});
    row += bins.bins * bins.rows;
    chunks += checked_product(bins.bins, ceil_div(bins.rows, shape.rows()));
  }
  const std::size_t words =
      checked_product(checked_product(chunks, dpf::kLineWords), table_.columns);
  lines_ = Buffer<std::uint32_t>(device_, words);
  table_.lines = lines_.data();
  table_bytes_ = words * sizeof(std::uint32_t);
  const auto aes = prg::aes_table();
  aes_ = Buffer<std::uint32_t>(device_, aes.size());
  device_.upload(aes_.data(), aes.data(), sizeof(aes));
  tables_ = {prg::aes_round_keys(), aes_.data()};
  device_.finish();
}

/// Returns the piece with a row of the shard.
template <gpu::ComputeDevice Device>
const typename GpuTable<Device>::Piece& GpuTable<Device>::piece_of(std::uint64_t row) const {
  const auto next =
      std::upper_bound(pieces_.begin(), pieces_.end(), row,
                       [](std::uint64_t r, const Piece& piece) { return r < piece.first; });
  return *std::prev(next);
}

/// Returns the lines of a piece, beginning with a bin of its group.
template <gpu::ComputeDevice Device>
LineTable GpuTable<Device>::lines_of(const Piece& piece, std::uint64_t first_bin) const {
  LineTable table = table_;
  table.rows = piece.bins.rows;
  const std::uint64_t bin = first_bin - piece.bins.first_bin;
  table.lines = table_.line(piece.chunk + bin * table.chunks(), 0);
  return table;
}

template <gpu::ComputeDevice Device>
void GpuTable<Device>::store(std::uint64_t first, const std::uint8_t* rows, std::uint64_t count,
                             std::optional<unsigned> rows_device) {
  if (first > shard_.rows || count > shard_.rows - first) {
    throw Error(ErrorKind::index, "rows " + std::to_string(first) + " to " +
                                      std::to_string(first + count) + " are outside the table of " +
                                      std::to_string(shard_.rows) + " rows");
  }
  if (count == 0) return;
  const std::vector<BinPart> parts = extent_.bins().parts(shard_.first_row + first, count);
  if (parts[0].first_row % kTileRows != 0) {
    throw Error(ErrorKind::argument, "first row: found " + std::to_string(first) +
                                         ", expected a multiple of " + std::to_string(kTileRows) +
                                         " in its bin");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  // Another library may still be writing the rows, on a stream of its own.
  if (rows_device) Device::synchronize(*rows_device);
  for (const BinPart& part : parts) {
    const Piece& piece = piece_of(first);
    const LineTable table = lines_of(piece, part.first_bin);
    const std::uint64_t chunk = (part.first_row - piece.bins.first_row) / table.shape.rows();
    if (rows_device == number_) {
      store_part(table, chunk, {rows, part.bins, part.rows, table.row_bytes, 0, table.row_bytes});
    } else {
      store_by_parts(table, chunk, part, rows);
    }
    first += part.bins * part.rows;
    rows += part.bins * part.rows * table.row_bytes;
  }
  device_.finish();
  staging_ = {};
}

template <gpu::ComputeDevice Device>
void GpuTable<Device>::store_part(const LineTable& table, std::uint64_t first_chunk,
                                  const RowsPart& part) {
  const StoreRows kernel = {table, part, first_chunk};
  device_.launch(kernel, kernel.grid());
}

/// Copies rows to the device some megabytes at a time: whole bins, or rows of one, or the same bytes of a
/// tile's rows.
template <gpu::ComputeDevice Device>
void GpuTable<Device>::store_by_parts(const LineTable& table, std::uint64_t first_chunk,
                                      const BinPart& bins, const std::uint8_t* rows) {
  constexpr std::size_t kPartBytes = 64 << 20;
  const std::size_t row_bytes = table.row_bytes;
  const std::uint64_t tiles = std::max<std::uint64_t>(1, kPartBytes / (kTileRows * row_bytes));
  const std::uint64_t bin_step =
      std::clamp<std::uint64_t>(tiles * kTileRows / bins.rows, 1, bins.bins);
  const std::uint64_t row_step = std::min(bins.rows, tiles * kTileRows);
  const std::size_t part_bytes = std::min(row_bytes, kPartBytes / kTileRows);
  std::uint8_t* staged = staging_.at_least(device_, bin_step * row_step * part_bytes);
  for (std::uint64_t bin = 0; bin < bins.bins; bin += bin_step) {
    LineTable own = table;
    own.lines = table.line(bin * table.chunks(), 0);
    for (std::uint64_t row = 0; row < bins.rows; row += row_step) {
      const std::uint64_t some_bins = std::min(bin_step, bins.bins - bin);
      const std::uint64_t some = std::min(row_step, bins.rows - row);
      const std::uint8_t* from = rows + (bin * bins.rows + row) * row_bytes;
      for (std::size_t byte = 0; byte < row_bytes; byte += part_bytes) {
        const std::size_t bytes = std::min(part_bytes, row_bytes - byte);
        device_.upload_rows(staged, from + byte, row_bytes, bytes, some_bins * some);
        store_part(own, first_chunk + row / table.shape.rows(),
                   {staged, some_bins, some, bytes, static_cast<std::uint32_t>(byte),
                    static_cast<std::uint32_t>(bytes)});
      }
    }
  }
}

template <gpu::ComputeDevice Device>
void GpuTable<Device>::replace(std::span<const std::uint64_t> indices, const std::uint8_t* rows) {
  if (indices.empty()) return;
  std::vector<std::uint64_t> positions;
  positions.reserve(indices.size());
  for (std::uint64_t index : indices) {
    if (index >= shard_.rows) {
      throw Error(ErrorKind::index, "row " + std::to_string(index) + " is outside the table of " +
                                        std::to_string(shard_.rows) + " rows");
    }
    const Piece& piece = piece_of(index);
    const std::uint64_t within = index - piece.first, bin = within / piece.bins.rows;
    const std::uint64_t chunks = ceil_div(piece.bins.rows, table_.shape.rows());
    positions.push_back((piece.chunk + bin * chunks) * table_.shape.rows() +
                        within % piece.bins.rows);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::size_t bytes = indices.size() * table_.row_bytes;
  const std::size_t begin = indices.size_bytes();
  std::uint8_t* staged = staging_.at_least(device_, begin + bytes);
  device_.upload(staged, positions.data(), begin);
  device_.upload(staged + begin, rows, bytes);
  const ReplaceRows kernel = {table_, reinterpret_cast<const std::uint64_t*>(staged),
                              staged + begin, indices.size()};
  device_.launch(kernel, kernel.grid());
  device_.finish();
  staging_ = {};
}

}  // namespace nescio::pir
