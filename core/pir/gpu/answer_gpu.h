#pragma once

// Answers from a table in the memory of a device (gpu/device.h), bit for bit those of pir/answer.h.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "dpf/key.h"
#include "dpf/keys_gpu.h"
#include "dpf/lines_gpu.h"
#include "gpu/device.h"
#include "pir/gpu/plan_gpu.h"
#include "pir/gpu/table_gpu.h"
#include "pir/layout.h"

namespace nescio::pir {

struct GpuOptions {
  Strategy strategy = Strategy::automatic;
  unsigned run = GpuPlan::kRun;  ///< nodes that a bounded walk expands at a time
};

/// The rows of a device within the whole table: from the beginning of a tile to the end of one.
struct GpuShard {
  std::uint64_t first_row;
  std::uint64_t rows;
};

/// Rows first_row..first_row+rows-1 of a table, in a device's memory. Thread-safe; computes one answer
/// at a time.
template <gpu::ComputeDevice Device>
class GpuTable {
 public:
  /// Allocates uninitialized rows. Throws Error(argument) for an invalid shard, Error(resource) if the
  /// device does not exist or is out of memory.
  GpuTable(unsigned device, const TableExtent& extent, const GpuShard& shard);

  /// Stores `count` rows, beginning with row `first` of the shard, which begins a tile; the rest of
  /// their last tile becomes zero. The rows are in host memory, or in that of device `rows_device`; on
  /// this device they are read without a copy.
  void store(std::uint64_t first, const std::uint8_t* rows, std::uint64_t count,
             std::optional<unsigned> rows_device);

  /// Overwrites the rows at `indices` of the shard, which must be distinct.
  void replace(std::span<const std::uint64_t> indices, const std::uint8_t* rows);

  /// Writes this shard's part of the answers to `out`, as `answer` does those of the whole table; they
  /// are the sums of all parts. Throws as count_lookups does, and Error(argument) for invalid options.
  GpuWork answer(std::span<const dpf::Keys* const> keys, const GpuOptions& options,
                 std::uint8_t* out);

  const gpu::DeviceInfo& info() const { return info_; }
  std::size_t bytes() const { return table_bytes_; }
  const TableExtent& extent() const { return extent_; }

  /// Measures the seconds in which the device reads the whole table once.
  double seconds_per_pass();
  /// Measures the products (of bits, or of bytes) per second by matrix instructions alone.
  double products_per_second();
  /// Measures the calls of a generator per second (for children, or for leaves), on registers.
  double calls_per_second(prg::GeneratorId generator, bool leaves);

 private:
  template <class T>
  using Buffer = gpu::DeviceBuffer<Device, T>;

  /// Bins of one size, or a part of one, and their lines.
  struct Piece {
    BinPart bins;
    std::uint64_t first;  ///< number of the first row in the shard
    std::uint64_t chunk;  ///< of the first line
  };
  const Piece& piece_of(std::uint64_t row) const;
  LineTable lines_of(const Piece& piece, std::uint64_t first_bin) const;
  void store_part(const LineTable& table, std::uint64_t first_chunk, const RowsPart& part);
  void store_by_parts(const LineTable& table, std::uint64_t first_chunk, const BinPart& bins,
                      const std::uint8_t* rows);

  struct Part;
  struct Group;
  std::vector<std::vector<Part>> batches(std::span<const dpf::Keys* const> keys,
                                         std::size_t lookups) const;
  std::vector<Group> load(const std::vector<Part>& parts);
  Group group_of(const Part& part, const dpf::KeysLayout& layout, const Block* own,
                 std::size_t first_key) const;
  void answer_batch(const std::vector<Part>& parts, const GpuOptions& options, GpuWork& work,
                    std::uint8_t* out);
  template <class Op>
  void add_up(std::vector<Group>& groups, const GpuOptions& options);
  template <class Op>
  const std::uint8_t* download(std::size_t keys);
  template <class G, class Op>
  void slabs(Group& group, Strategy strategy);
  template <class G, class Op>
  void bounded(Group& group, unsigned run);
  template <class G, class Op>
  void cooperative(Group& group);
  template <class G>
  void expand(Group& group, std::uint64_t begin, std::uint64_t end);
  template <class Op>
  void multiply(Group& group, std::uint64_t first_chunk, std::uint64_t chunks);
  template <class Op>
  typename Op::Sum* sums_of(const Group& group);

  template <gpu::Kernel Kernel>
  void launch(Group& group, const Kernel& kernel);
  template <gpu::Kernel Kernel>
  double seconds(const Kernel& kernel);

  unsigned number_;
  Device device_;
  gpu::DeviceInfo info_;
  TableExtent extent_;
  GpuShard shard_;
  std::vector<Piece> pieces_;
  std::size_t table_bytes_ = 0;
  Buffer<std::uint32_t> lines_;
  LineTable table_;  // of all pieces
  prg::GpuTables tables_;
  Buffer<std::uint32_t> aes_;

  // Buffers of answers, kept from one to the next.
  std::mutex mutex_;
  Buffer<std::uint8_t> staging_;
  gpu::HostBuffer<Device> host_keys_, host_answers_;
  Buffer<Block> keys_;
  std::vector<Buffer<Block>> levels_;
  Buffer<std::uint32_t> shares_;
  Buffer<std::uint64_t> sums_;
  Buffer<std::uint8_t> answers_;
};

}  // namespace nescio::pir
