#pragma once

// Answers from a table in the memory of a device (gpu/device.h): the same bits as pir/answer.h.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "dpf/key.h"
#include "dpf/lines_gpu.h"
#include "gpu/device.h"
#include "pir/gpu/plan_gpu.h"
#include "pir/gpu/table_gpu.h"

namespace nescio::pir {

struct GpuOptions {
  Strategy strategy = Strategy::automatic;
  unsigned run = GpuPlan::kRun;  ///< nodes that a bounded walk expands at a time
};

/// Where the rows of a device stand among those of the whole table, whose keys it is sent.
struct GpuShard {
  std::uint64_t first_row;  ///< a multiple of kTileRows
  std::uint64_t rows;
  std::uint64_t domain;  ///< rows of the whole table
};

/// Rows first_row..first_row+rows-1 of a table, in a device's memory. May be used from several
/// threads; one answer at a time is made.
template <class Device>
class GpuTable {
 public:
  /// Throws Error(argument) for a shard that cannot be, Error(resource) if there is no such device or
  /// its memory is short. The rows are not initialised.
  GpuTable(unsigned device, const GpuShard& shard, std::size_t row_bytes, dpf::Output output);

  /// Writes `count` rows from row `first` of the shard on, a multiple of kTileRows; the rest of their
  /// last tile becomes zero. The rows lie in the host's memory, or in that of the device with the
  /// number `rows_device`; if it is this one, they are not copied.
  void store(std::uint64_t first, const std::uint8_t* rows, std::uint64_t count,
             std::optional<unsigned> rows_device);

  /// Overwrites the rows at `indices` of the shard, which are all different.
  void replace(std::span<const std::uint64_t> indices, const std::uint8_t* rows);

  /// Writes this shard's part of the answer to key i at out + i * answer_bytes(...): parts add up to
  /// the answer. Throws Error(mismatch) unless the keys are for the whole table, Error(argument) for
  /// options that cannot be.
  GpuWork answer(const dpf::Keys& keys, const GpuOptions& options, std::uint8_t* out);

  const gpu::DeviceInfo& info() const { return info_; }
  std::size_t bytes() const { return table_bytes_; }
  std::uint64_t rows() const { return table_.rows; }
  std::size_t row_bytes() const { return table_.row_bytes; }
  dpf::Output output() const { return output_; }

  /// Seconds in which the device reads the whole table once, measured.
  double seconds_per_pass();
  /// Products (of bits, or of bytes) a second by matrix instructions alone, measured.
  double products_per_second();
  /// Calls of a generator a second (for children, or for leaves) with everything in registers.
  double calls_per_second(prg::GeneratorId generator, bool leaves);

 private:
  template <class T>
  using Buffer = gpu::DeviceBuffer<Device, T>;

  void take(const RowsPart& part, std::uint64_t first);
  void take_by_parts(std::uint64_t first, const std::uint8_t* rows, std::uint64_t count);

  struct Group;
  template <class Op>
  void answer_group(Group& group, const GpuOptions& options, std::uint8_t* out);
  template <class G, class Op>
  void slabs(Group& group, Strategy strategy);
  template <class G, class Op>
  void bounded(Group& group, unsigned run);
  template <class G, class Op>
  void cooperative(Group& group);
  template <class G>
  void grow(Group& group, std::uint64_t begin, std::uint64_t end);
  template <class Op>
  void multiply(Group& group, std::uint64_t first_chunk, std::uint64_t chunks);

  void load(Group& group, const dpf::Keys& keys, std::size_t first, std::size_t count);
  template <class Kernel>
  void launch(Group& group, const Kernel& kernel);
  void check(const dpf::Keys& keys, const GpuOptions& options) const;
  template <class Kernel>
  double seconds(const Kernel& kernel);

  unsigned number_;
  Device device_;
  gpu::DeviceInfo info_;
  dpf::Output output_;
  GpuShard shard_;
  std::size_t table_bytes_ = 0;
  Buffer<std::uint32_t> lines_;
  LineTable table_;
  prg::GpuTables tables_;
  Buffer<std::uint32_t> aes_;

  // Room of answers, kept from one to the next.
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
