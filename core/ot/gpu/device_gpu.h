#pragma once

// Oblivious transfer on a device (gpu/device.h): blocks in device memory, and the operations of
// both parties on them. Results are the same bits as those of the CPU code. Functions return when
// their work is finished.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>

#include "base/block.h"
#include "gpu/device.h"
#include "gpu/memory_pool.h"
#include "ot/gpu/threads_gpu.h"
#include "ot/trees/tree.h"

namespace nescio::ot {

using Seed = std::span<const std::uint8_t, 16>;

/// The way to grow trees: the steps of figure 9a of the cuOT paper.
enum class TreeWay {
  fused,     ///< one level of all trees at a time, with the sums in the same kernel
  separate,  ///< the sums in a second kernel
  single,    ///< the sums in a second kernel, one tree at a time
};

/// The way to encode primal LPN: the steps of figure 9c of the cuOT paper.
enum class PrimalWay {
  fused,     ///< one kernel generates the words of the code and adds rows to the noise
  words,     ///< a first kernel writes the words of the code to memory
  separate,  ///< the same, and a third kernel adds the noise
};

inline constexpr std::array<std::string_view, 3> kTreeWays = {"fused", "separate", "single"};
inline constexpr std::array<std::string_view, 3> kPrimalWays = {"fused", "words", "separate"};

/// Tuning of expand-convolute encoding. The result does not depend on it.
struct EcTuning {
  std::uint64_t segment = 200;  ///< blocks of a segment, a multiple of 25
};

/// Blocks in the memory of a device: an array or a part of one, which it shares.
template <gpu::ComputeDevice Device>
class DeviceBlocks {
 public:
  using Array = gpu::PooledBuffer<Device, Block>;

  explicit DeviceBlocks(std::shared_ptr<Array> array)
      : array_(std::move(array)), count_(array_->size()) {}

  /// Returns blocks first to first + count - 1. Throws Error(index) if they do not exist.
  DeviceBlocks part(std::size_t first, std::size_t count) const;

  Block* data() const { return array_->data() + first_; }
  std::size_t size() const { return count_; }
  unsigned device() const { return array_->memory().number(); }
  void download(Block* to) const;

  /// Declares that other libraries read and write these blocks on their own streams. From now on
  /// their queued work is waited for before the blocks are read and before the memory is reused.
  void share() const { array_->share(); }
  void synchronize() const {
    if (array_->shared()) Device::synchronize(device());
  }

 private:
  std::shared_ptr<Array> array_;
  std::size_t first_ = 0;
  std::size_t count_;
};

/// The operations on one device. Safe to use from several threads; operations run one at a time.
/// Throws Error(resource) if the device does not exist or is out of memory, Error(argument) for
/// sizes that do not match.
template <gpu::ComputeDevice Device>
class OtDevice {
 public:
  using Blocks = DeviceBlocks<Device>;

  explicit OtDevice(unsigned device);

  unsigned number() const { return memory_->number(); }
  Blocks empty(std::size_t count);
  Blocks upload(std::span<const Block> blocks);
  Blocks join(std::span<const Blocks> parts);

  /// Grows one tree per seed and returns the 2^depth leaves of each, with lowest bits cleared.
  /// Writes the XOR of the left nodes of each level to `sums`, `depth` blocks per tree.
  Blocks grow_trees(std::span<const Block> seeds, unsigned depth, Block delta, TreeBase keys,
                    Block* sums, TreeWay way);

  /// Returns the leaves of punctured trees. `sides` and `choices` have `depth` items per tree: item
  /// l of `sides` is the XOR of the nodes of level l + 1 on the side of choice l (lowest bit 0:
  /// left).
  Blocks puncture_trees(std::span<const Block> sides, std::span<const std::uint8_t> choices,
                        unsigned depth, TreeBase keys);

  /// XORs the product of the rows from first_row on with `seeds` into `noise`.
  void encode_primal(const Blocks& noise, const Blocks& seeds, Seed code_seed,
                     std::uint64_t first_row, PrimalWay way);

  /// Compresses 2n blocks into the first n; the others are overwritten.
  void encode_ec(const Blocks& noise, Seed code_seed, const EcTuning& tuning);

  /// Returns h(x ^ delta, i) for transfers first, first + 1, ...
  Blocks hash(const Blocks& blocks, std::uint64_t first, std::uint64_t tag, Block base,
              Block delta);

  /// Returns the sum of chi[first + i] * leaves[i].
  Block chi_sum(const Blocks& leaves, Seed chi_seed, std::uint64_t first);
  /// Writes chi at the given positions to `out`.
  void chi_at(std::span<const std::uint64_t> positions, Seed chi_seed, Block* out);

  /// Writes the lowest bit of each block to `out`, one byte per block.
  void low_bits(const Blocks& blocks, std::uint8_t* out);
  /// Transposes 128 rows of `row_bytes` bytes: bit j of block i is bit i of row j.
  Blocks transpose_bits(const std::uint8_t* rows, std::size_t row_bytes);

 private:
  template <class T>
  using Array = gpu::PooledBuffer<Device, T>;

  Device& device() { return memory_->device(); }
  template <class T>
  std::unique_ptr<Array<T>> allocate(std::size_t size);
  template <class T>
  std::unique_ptr<Array<T>> to_device(std::span<const T> from);
  Blocks new_blocks(std::size_t count);

  template <gpu::Kernel Kernel>
  void launch(const Kernel& kernel);
  template <gpu::Kernel Kernel>
  void launch_tiles(Kernel kernel, std::uint64_t items);
  AesKernel aes() const { return {{0, 0}, table_->data()}; }

  using Keys = std::unique_ptr<Array<prg::AesColumns>>;
  Keys tree_keys(TreeBase base, std::uint64_t trees, unsigned depth);
  Keys period_keys(Block base, std::uint64_t first, std::uint64_t count);

  struct Trees;
  Blocks start_trees(Trees& trees);
  template <bool punctured>
  void grow_level(const Trees& trees, unsigned level, bool fused);
  void convolute(Block* y, std::uint64_t places, const prg::AesColumns& keys,
                 const EcTuning& tuning);
  std::unique_ptr<Array<std::uint32_t>> chain(const std::uint32_t* states, std::uint64_t segments);
  void prepare(const Blocks& blocks) const;

  std::shared_ptr<gpu::MemoryPool<Device>> memory_;
  gpu::DeviceInfo info_;
  std::unique_ptr<Array<std::uint32_t>> table_;
  std::mutex mutex_;
};

}  // namespace nescio::ot
