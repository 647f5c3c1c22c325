// The part of pir/gpu/answer_gpu.h that takes rows in, included once for each device.

#include <algorithm>
#include <string>

#include "base/buffer.h"
#include "base/error.h"
#include "pir/gpu/answer_gpu.h"
#include "pir/gpu/table_gpu.h"
#include "pir/layout.h"

namespace nescio::pir {

template <class Device>
GpuTable<Device>::GpuTable(unsigned device, const GpuShard& shard, std::size_t row_bytes,
                           dpf::Output output)
    : number_(device),
      device_(device),
      info_(Device::info(device)),
      output_(output),
      shard_(shard) {
  const Extent extent = {shard.rows, row_bytes, layout_for(output)};
  static_cast<void>(extent.bytes());  // refuses what no address space holds
  if (shard.first_row % kTileRows != 0 || shard.rows > shard.domain ||
      shard.first_row > shard.domain - shard.rows) {
    throw Error(ErrorKind::argument,
                std::to_string(shard.rows) + " rows from row " + std::to_string(shard.first_row) +
                    " on are no part of a table of " + std::to_string(shard.domain) + " rows");
  }
  const dpf::LineShape shape(output);
  table_ = {nullptr, shape, shard.rows, static_cast<std::uint32_t>(row_bytes),
            static_cast<std::uint32_t>(LineTable::columns_for(shape, row_bytes))};
  const std::size_t words = checked_product(table_.chunks() * dpf::kLineWords, table_.columns);
  lines_ = Buffer<std::uint32_t>(device_, words);
  table_.lines = lines_.data();
  table_bytes_ = words * sizeof(std::uint32_t);
  const auto aes = prg::aes_table();
  aes_ = Buffer<std::uint32_t>(device_, aes.size());
  device_.upload(aes_.data(), aes.data(), sizeof(aes));
  tables_ = {prg::aes_round_keys(), aes_.data()};
  device_.finish();
}

template <class Device>
void GpuTable<Device>::store(std::uint64_t first, const std::uint8_t* rows, std::uint64_t count,
                             std::optional<unsigned> rows_device) {
  if (first > table_.rows || count > table_.rows - first) {
    throw Error(ErrorKind::index, "rows " + std::to_string(first) + " to " +
                                      std::to_string(first + count) + " of a table of " +
                                      std::to_string(table_.rows) + " rows");
  }
  if (first % kTileRows != 0) {
    throw Error(ErrorKind::argument, "rows are stored from a multiple of " +
                                         std::to_string(kTileRows) + " on, not from row " +
                                         std::to_string(first));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  // The rows may still be on their way, on a stream that is not known here.
  if (rows_device) Device::synchronize(*rows_device);
  if (rows_device == number_) {
    if (count > 0) take({rows, count, table_.row_bytes, 0, table_.row_bytes}, first);
  } else {
    take_by_parts(first, rows, count);
  }
  device_.finish();
  staging_ = {};
}

template <class Device>
void GpuTable<Device>::take(const RowsPart& part, std::uint64_t first) {
  const TakeRows kernel = {table_, part, first};
  device_.launch(kernel, kernel.grid());
}

/// Brings rows to the device some megabytes at a time: whole rows, or a stretch of those of a tile.
template <class Device>
void GpuTable<Device>::take_by_parts(std::uint64_t first, const std::uint8_t* rows,
                                     std::uint64_t count) {
  constexpr std::size_t kPartBytes = 64 << 20;
  const std::size_t row_bytes = table_.row_bytes;
  const std::uint64_t tiles = std::max<std::uint64_t>(1, kPartBytes / (kTileRows * row_bytes));
  const std::uint64_t part_rows = std::min(count, tiles * kTileRows);
  const std::size_t part_bytes = std::min(row_bytes, kPartBytes / kTileRows);
  std::uint8_t* room = staging_.at_least(device_, part_rows * part_bytes);
  for (std::uint64_t row = 0; row < count; row += part_rows) {
    const std::uint64_t some = std::min(part_rows, count - row);
    for (std::size_t byte = 0; byte < row_bytes; byte += part_bytes) {
      const std::size_t bytes = std::min(part_bytes, row_bytes - byte);
      device_.upload_rows(room, rows + row * row_bytes + byte, row_bytes, bytes, some);
      take({room, some, bytes, static_cast<std::uint32_t>(byte), static_cast<std::uint32_t>(bytes)},
           first + row);
    }
  }
}

template <class Device>
void GpuTable<Device>::replace(std::span<const std::uint64_t> indices, const std::uint8_t* rows) {
  for (std::uint64_t index : indices) {
    if (index < table_.rows) continue;
    throw Error(ErrorKind::index, "row " + std::to_string(index) + " of a table of " +
                                      std::to_string(table_.rows) + " rows");
  }
  if (indices.empty()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::size_t bytes = indices.size() * table_.row_bytes;
  const std::size_t begin = indices.size_bytes();
  std::uint8_t* room = staging_.at_least(device_, begin + bytes);
  device_.upload(room, indices.data(), begin);
  device_.upload(room + begin, rows, bytes);
  const PutRows put = {table_, reinterpret_cast<const std::uint64_t*>(room), room + begin,
                       indices.size()};
  device_.launch(put, put.grid());
  device_.finish();
  staging_ = {};
}

}  // namespace nescio::pir
