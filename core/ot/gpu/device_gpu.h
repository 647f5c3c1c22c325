#pragma once

// Oblivious transfers on a device (gpu/device.h): blocks in its memory, and what both parties do with
// them, with the bits of the processor's code. Everything is done when a function returns.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>

#include "base/block.h"
#include "gpu/device.h"
#include "gpu/memory.h"
#include "ot/gpu/threads_gpu.h"
#include "ot/trees/tree.h"

namespace nescio::ot {

using Seed = std::span<const std::uint8_t, 16>;

/// How trees are grown: the steps of the paper's figure 9a ("cuOT").
enum class TreeWay {
  fused,     ///< a level of all trees at a time, sums by the threads that make the nodes
  separate,  ///< sums in a pass of their own
  single,    ///< that, and one tree at a time
};

/// How primal LPN is encoded: the steps of its figure 9c.
enum class PrimalWay {
  fused,     ///< words of the code where they are used, added to the noise
  words,     ///< words of the code are written to memory first
  separate,  ///< that, and the noise is added in a pass of its own
};

inline constexpr std::array<std::string_view, 3> kTreeWays = {"fused", "separate", "single"};
inline constexpr std::array<std::string_view, 3> kPrimalWays = {"fused", "words", "separate"};

/// Where a code of dual LPN is cut for a card; the bits do not depend on it.
struct Cut {
  std::uint64_t segment = 200;  ///< places, a multiple of 25
};

/// Blocks in a device's memory: all of an array of them, or a part.
template <class Device>
class DeviceBlocks {
 public:
  using Array = gpu::Room<Device, Block>;

  explicit DeviceBlocks(std::shared_ptr<Array> array)
      : array_(std::move(array)), count_(array_->size()) {}

  /// Throws Error(index) unless it is a part of this.
  DeviceBlocks part(std::size_t first, std::size_t count) const;

  Block* data() const { return array_->data() + first_; }
  std::size_t size() const { return count_; }
  unsigned device() const { return array_->memory().number(); }
  void download(Block* to) const;

  /// From now on others read and write it, on streams of their own: its memory is not used for
  /// anything else before they are done, and what they have queued is waited for before it is read.
  void show() const { array_->show(); }
  void settle() const {
    if (array_->shown()) Device::settle(device());
  }

 private:
  std::shared_ptr<Array> array_;
  std::size_t first_ = 0;
  std::size_t count_;
};

/// One device. May be used from several threads; one thing at a time is done. Throws Error(resource) if
/// there is no such device or its memory is short, Error(argument) for sizes that do not go together.
template <class Device>
class OtDevice {
 public:
  using Blocks = DeviceBlocks<Device>;

  explicit OtDevice(unsigned device);

  unsigned number() const { return memory_->number(); }
  Blocks empty(std::size_t count);
  Blocks upload(std::span<const Block> blocks);
  Blocks join(std::span<const Blocks> parts);

  /// A tree a seed: 2^depth leaves, lowest bits cleared; and to `sums` the XOR of the left nodes of
  /// its levels, `depth` blocks a tree.
  Blocks grow_trees(std::span<const Block> seeds, unsigned depth, Block delta, TreeBase keys,
                    Block* sums, TreeWay way);

  /// The leaves of punctured trees. `sides` and `choices` have `depth` items a tree: the XOR of the
  /// nodes of a level on the side of a choice, whose lowest bit counts.
  Blocks puncture_trees(std::span<const Block> sides, std::span<const std::uint8_t> choices,
                        unsigned depth, TreeBase keys);

  /// XORs rows first_row.. of the code, times `seeds`, into `noise`.
  void encode_primal(const Blocks& noise, const Blocks& seeds, Seed code_seed,
                     std::uint64_t first_row, PrimalWay way);

  /// Compresses 2n blocks into the first n; what stands in the rest is spoilt.
  void encode_ec(const Blocks& noise, Seed code_seed, const Cut& cut);

  /// h(x ^ delta, i) for the transfers from number `first` on.
  Blocks hash(const Blocks& blocks, std::uint64_t first, std::uint64_t tag, Block base,
              Block delta);

  /// The sum of chi[first + i] * leaves[i].
  Block chi_sum(const Blocks& leaves, Seed chi_seed, std::uint64_t first);
  /// chi at some positions.
  void chi_at(std::span<const std::uint64_t> positions, Seed chi_seed, Block* out);

  /// The lowest bit of each block.
  void low_bits(const Blocks& blocks, std::uint8_t* out);
  /// Bit i of each of 128 rows to block i; a row has `row_bytes` bytes.
  Blocks transpose_bits(const std::uint8_t* rows, std::size_t row_bytes);

 private:
  template <class T>
  using Room = gpu::Room<Device, T>;

  Device& device() { return memory_->device(); }
  template <class T>
  std::unique_ptr<Room<T>> room(std::size_t size);
  template <class T>
  std::unique_ptr<Room<T>> uploaded(std::span<const T> from);
  Blocks made(std::size_t count);

  template <class Kernel>
  void launch(const Kernel& kernel);
  template <class Kernel>
  void launch_tiles(Kernel kernel, std::uint64_t items);
  AesKernel aes() const { return {{0, 0}, table_->data()}; }

  using Keys = std::unique_ptr<Room<prg::AesColumns>>;
  Keys tree_keys(TreeBase base, std::uint64_t trees, unsigned depth);
  Keys stretch_keys(Block base, std::uint64_t first, std::uint64_t count);

  struct Trees;
  Blocks plant(Trees& trees);
  template <bool punctured>
  void grow_level(const Trees& trees, unsigned level, bool fused);
  void convolute(Block* y, std::uint64_t places, const prg::AesColumns& keys, const Cut& cut);
  std::unique_ptr<Room<std::uint32_t>> chain(const std::uint32_t* states, std::uint64_t segments);
  void open(const Blocks& blocks) const;

  std::shared_ptr<gpu::Memory<Device>> memory_;
  gpu::DeviceInfo info_;
  std::unique_ptr<Room<std::uint32_t>> table_;
  std::mutex mutex_;
};

}  // namespace nescio::ot
