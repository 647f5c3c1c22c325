// The part of pir/gpu/answer_gpu.h that stores rows, included once for each device.

#include <algorithm>
#include <string>

#include "base/buffer.h"
#include "base/error.h"
#include "pir/gpu/answer_gpu.h"
#include "pir/gpu/table_gpu.h"
#include "pir/layout.h"

namespace nescio::pir {

template <gpu::ComputeDevice Device>
GpuTable<Device>::GpuTable(unsigned device, const GpuShard& shard, std::size_t row_bytes,
                           dpf::Output output)
    : number_(device),
      device_(device),
      info_(Device::info(device)),
      output_(output),
      shard_(shard) {
  const Extent extent = {shard.rows, row_bytes, layout_for(output)};
  static_cast<void>(extent.bytes());  // throws if the table exceeds the address space
  if (shard.first_row % kTileRows != 0 || shard.rows > shard.domain ||
      shard.first_row > shard.domain - shard.rows) {
    throw Error(ErrorKind::argument,
                std::to_string(shard.rows) + " rows from row " + std::to_string(shard.first_row) +
                    " are not part of a table of " + std::to_string(shard.domain) + " rows");
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

template <gpu::ComputeDevice Device>
void GpuTable<Device>::store(std::uint64_t first, const std::uint8_t* rows, std::uint64_t count,
                             std::optional<unsigned> rows_device) {
  if (first > table_.rows || count > table_.rows - first) {
    throw Error(ErrorKind::index, "rows " + std::to_string(first) + " to " +
                                      std::to_string(first + count) + " are outside the table of " +
                                      std::to_string(table_.rows) + " rows");
  }
  if (first % kTileRows != 0) {
    throw Error(ErrorKind::argument, "first row: found " + std::to_string(first) +
                                         ", expected a multiple of " + std::to_string(kTileRows));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  // Another library may still be writing the rows, on a stream of its own.
  if (rows_device) Device::synchronize(*rows_device);
  if (rows_device == number_) {
    if (count > 0) store_part({rows, count, table_.row_bytes, 0, table_.row_bytes}, first);
  } else {
    store_by_parts(first, rows, count);
  }
  device_.finish();
  staging_ = {};
}

template <gpu::ComputeDevice Device>
void GpuTable<Device>::store_part(const RowsPart& part, std::uint64_t first) {
  const StoreRows kernel = {table_, part, first};
  device_.launch(kernel, kernel.grid());
}

/// Copies rows to the device some megabytes at a time: whole rows, or the same bytes of a tile's rows.
template <gpu::ComputeDevice Device>
void GpuTable<Device>::store_by_parts(std::uint64_t first, const std::uint8_t* rows,
                                      std::uint64_t count) {
  constexpr std::size_t kPartBytes = 64 << 20;
  const std::size_t row_bytes = table_.row_bytes;
  const std::uint64_t tiles = std::max<std::uint64_t>(1, kPartBytes / (kTileRows * row_bytes));
  const std::uint64_t part_rows = std::min(count, tiles * kTileRows);
  const std::size_t part_bytes = std::min(row_bytes, kPartBytes / kTileRows);
  std::uint8_t* staged = staging_.at_least(device_, part_rows * part_bytes);
  for (std::uint64_t row = 0; row < count; row += part_rows) {
    const std::uint64_t some = std::min(part_rows, count - row);
    for (std::size_t byte = 0; byte < row_bytes; byte += part_bytes) {
      const std::size_t bytes = std::min(part_bytes, row_bytes - byte);
      device_.upload_rows(staged, rows + row * row_bytes + byte, row_bytes, bytes, some);
      store_part({staged, some, bytes, static_cast<std::uint32_t>(byte),
                  static_cast<std::uint32_t>(bytes)},
                 first + row);
    }
  }
}

template <gpu::ComputeDevice Device>
void GpuTable<Device>::replace(std::span<const std::uint64_t> indices, const std::uint8_t* rows) {
  for (std::uint64_t index : indices) {
    if (index < table_.rows) continue;
    throw Error(ErrorKind::index, "row " + std::to_string(index) + " is outside the table of " +
                                      std::to_string(table_.rows) + " rows");
  }
  if (indices.empty()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::size_t bytes = indices.size() * table_.row_bytes;
  const std::size_t begin = indices.size_bytes();
  std::uint8_t* staged = staging_.at_least(device_, begin + bytes);
  device_.upload(staged, indices.data(), begin);
  device_.upload(staged + begin, rows, bytes);
  const ReplaceRows kernel = {table_, reinterpret_cast<const std::uint64_t*>(staged),
                              staged + begin, indices.size()};
  device_.launch(kernel, kernel.grid());
  device_.finish();
  staging_ = {};
}

}  // namespace nescio::pir
