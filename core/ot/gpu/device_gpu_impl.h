// The body of ot/gpu/device_gpu.h, included once for each device: blocks, and trees.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "ot/gpu/device_gpu.h"
#include "ot/gpu/keys_gpu.h"
#include "ot/gpu/trees_gpu.h"
#include "ot/stream.h"
#include "ot/trees/tree.h"

namespace nescio::ot {

inline prg::AesColumns round_keys_of(Seed seed, std::uint8_t number = 0) {
  std::uint8_t key[sizeof(Block)];
  std::copy(seed.begin(), seed.end(), key);
  key[0] ^= number;
  return prg::aes_round_keys(public_round_keys(key));
}

inline Error argument_error(const std::string& what, std::uint64_t found,
                            const std::string& expected) {
  return Error(ErrorKind::argument,
               what + ": found " + std::to_string(found) + ", expected " + expected);
}

/// The number of leaves of `trees` trees. Throws Error(argument) for an invalid depth,
/// Error(resource) if the leaves exceed the address space.
inline std::size_t checked_leaves(std::size_t trees, unsigned depth) {
  check_depth(depth);
  checked_product(trees, sizeof(Block) << depth);
  return trees << depth;
}

template <gpu::ComputeDevice Device>
DeviceBlocks<Device> DeviceBlocks<Device>::part(std::size_t first, std::size_t count) const {
  if (first > count_ || count > count_ - first) {
    throw Error(ErrorKind::index, "blocks: found " + std::to_string(first) + " to " +
                                      std::to_string(first + count) + ", expected a part of " +
                                      std::to_string(count_) + " blocks");
  }
  DeviceBlocks some(*this);
  some.first_ += first;
  some.count_ = count;
  return some;
}

template <gpu::ComputeDevice Device>
void DeviceBlocks<Device>::download(Block* to) const {
  synchronize();
  Device& device = array_->memory().device();
  device.download(to, data(), count_ * sizeof(Block));
  device.finish();
}

template <gpu::ComputeDevice Device>
OtDevice<Device>::OtDevice(unsigned device)
    : memory_(std::make_shared<gpu::MemoryPool<Device>>(device)),
      info_(Device::info(device)),
      table_(to_device<std::uint32_t>(prg::aes_table())) {}

template <gpu::ComputeDevice Device>
template <class T>
auto OtDevice<Device>::allocate(std::size_t size) -> std::unique_ptr<Array<T>> {
  return std::make_unique<Array<T>>(memory_, size);
}

template <gpu::ComputeDevice Device>
template <class T>
auto OtDevice<Device>::to_device(std::span<const T> from) -> std::unique_ptr<Array<T>> {
  auto to = allocate<T>(from.size());
  device().upload(to->data(), from.data(), from.size_bytes());
  device().finish();  // the caller may free its memory after this function returns
  return to;
}

template <gpu::ComputeDevice Device>
DeviceBlocks<Device> OtDevice<Device>::new_blocks(std::size_t count) {
  checked_product(count, sizeof(Block));
  return Blocks(std::make_shared<typename Blocks::Array>(memory_, count));
}

/// Prepares blocks for use. Throws Error(argument) if they are on another device.
template <gpu::ComputeDevice Device>
void OtDevice<Device>::prepare(const Blocks& blocks) const {
  if (blocks.device() != number()) {
    throw argument_error("device of the blocks", blocks.device(),
                         std::to_string(number()) + "; copy them to that device with join()");
  }
  blocks.synchronize();
}

template <gpu::ComputeDevice Device>
template <gpu::Kernel Kernel>
void OtDevice<Device>::launch(const Kernel& kernel) {
  if (kernel.grid().x > 0) device().launch(kernel, kernel.grid());
}

/// Divides the items among at most as many blocks of threads as the device holds at once.
template <gpu::ComputeDevice Device>
template <gpu::Kernel Kernel>
void OtDevice<Device>::launch_tiles(Kernel kernel, std::uint64_t items) {
  if (items == 0) return;
  const std::uint64_t most = std::uint64_t{device().resident_blocks(kernel)} * info_.processors;
  kernel.tiles = {items, 1};
  kernel.tiles.blocks = static_cast<std::uint32_t>(std::min(kernel.tiles.count(), most));
  device().launch(kernel, {kernel.tiles.blocks, 1});
}

template <gpu::ComputeDevice Device>
DeviceBlocks<Device> OtDevice<Device>::empty(std::size_t count) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Blocks blocks = new_blocks(count);
  device().zero(blocks.data(), count * sizeof(Block));
  device().finish();
  return blocks;
}

template <gpu::ComputeDevice Device>
DeviceBlocks<Device> OtDevice<Device>::upload(std::span<const Block> from) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Blocks blocks = new_blocks(from.size());
  device().upload(blocks.data(), from.data(), from.size_bytes());
  device().finish();
  return blocks;
}

template <gpu::ComputeDevice Device>
DeviceBlocks<Device> OtDevice<Device>::join(std::span<const Blocks> parts) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::size_t count = 0;
  for (const Blocks& part : parts) count += part.size();
  const Blocks all = new_blocks(count);
  Block* to = all.data();
  for (const Blocks& part : parts) {
    part.synchronize();
    device().copy(to, part.data(), part.size() * sizeof(Block));
    to += part.size();
  }
  device().finish();
  return all;
}

/// Expands the keys of the levels of trees, `depth` keys per tree.
template <gpu::ComputeDevice Device>
auto OtDevice<Device>::tree_keys(TreeBase base, std::uint64_t trees, unsigned depth) -> Keys {
  auto keys = allocate<prg::AesColumns>(checked_product(trees, depth));
  const std::uint64_t first = base.first_tree << kLevelBits;
  launch(ExpandKeys{
      {keys->size()}, table_->data(), base.base, first, depth, kLevelBits, keys->data()});
  return keys;
}

/// Expands the keys of transfers first to first + count - 1, one per key period.
template <gpu::ComputeDevice Device>
auto OtDevice<Device>::period_keys(Block base, std::uint64_t first, std::uint64_t count) -> Keys {
  constexpr std::uint64_t kPeriod = std::uint64_t{1} << kPeriodBits;
  auto keys = allocate<prg::AesColumns>((first % kPeriod + count + kPeriod - 1) / kPeriod);
  launch(ExpandKeys{{keys->size()}, table_->data(), base, first / kPeriod, 1, 0, keys->data()});
  return keys;
}

/// Trees that are being grown. Levels alternate between the memory of the leaves and a scratch
/// buffer of half its size.
template <gpu::ComputeDevice Device>
struct OtDevice<Device>::Trees {
  std::uint64_t count;
  unsigned depth;
  const Block* seeds;
  Block delta;
  const prg::AesColumns* keys;
  Puncture puncture;
  Block* nodes[2];
  std::uint32_t* sums;

  Block* at(unsigned level) const { return nodes[(depth - level) % 2]; }
  std::size_t sum_words() const { return count * depth * kBlockWords; }
};

/// Allocates the leaves and writes level 1.
template <gpu::ComputeDevice Device>
DeviceBlocks<Device> OtDevice<Device>::start_trees(Trees& trees) {
  const Blocks leaves = new_blocks(checked_leaves(trees.count, trees.depth));
  trees.nodes[0] = leaves.data();
  device().zero(trees.sums, trees.sum_words() * sizeof(std::uint32_t));
  launch(StartTrees{{trees.count}, trees.seeds, trees.delta, trees.depth, trees.at(1), trees.sums});
  return leaves;
}

template <gpu::ComputeDevice Device>
template <bool punctured>
void OtDevice<Device>::grow_level(const Trees& trees, unsigned level, bool fused) {
  const GrowLevel<punctured> grow = {aes(),
                                     trees.keys,
                                     level,
                                     trees.depth,
                                     trees.at(level),
                                     trees.at(level + 1),
                                     fused ? trees.sums : nullptr,
                                     trees.puncture};
  launch_tiles(grow, trees.count << level);
  if (fused) return;
  const SumLevel sum = {aes(), level, trees.depth, grow.children, trees.sums};
  launch_tiles(sum, trees.count << level);
}

template <gpu::ComputeDevice Device>
DeviceBlocks<Device> OtDevice<Device>::grow_trees(std::span<const Block> seeds, unsigned depth,
                                                  Block delta, TreeBase base, Block* sums,
                                                  TreeWay way) {
  checked_leaves(seeds.size(), depth);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto roots = to_device(seeds);
  const auto keys = tree_keys(base, seeds.size(), depth);
  Trees trees = {seeds.size(), depth, roots->data(), delta, keys->data(), {}, {}, nullptr};
  const auto own_sums = allocate<std::uint32_t>(trees.sum_words());
  const auto scratch = allocate<Block>(seeds.size() << (depth - 1));
  trees.nodes[1] = scratch->data();
  trees.sums = own_sums->data();
  const Blocks leaves = start_trees(trees);
  for (unsigned level = 1; level < depth; ++level) {
    if (way != TreeWay::single) {
      grow_level<false>(trees, level, way == TreeWay::fused);
      continue;
    }
    for (std::uint64_t tree = 0; tree < trees.count; ++tree) {
      Trees one = trees;
      one.count = 1;
      one.keys += tree * depth;
      one.sums += tree * depth * kBlockWords;
      one.nodes[(depth - level) % 2] += tree << level;
      one.nodes[(depth - level - 1) % 2] += tree << (level + 1);
      grow_level<false>(one, level, false);
    }
  }
  device().download(sums, trees.sums, trees.sum_words() * sizeof(std::uint32_t));
  device().finish();
  return leaves;
}

/// The index of the punctured leaf of each tree: on each level the path takes the side that was not
/// chosen. Constant time.
inline std::vector<std::uint32_t> punctured_leaves(std::span<const std::uint8_t> choices,
                                                   unsigned depth) {
  std::vector<std::uint32_t> alphas(choices.size() / depth);
  for (std::size_t i = 0; i < choices.size(); ++i) {
    std::uint32_t& alpha = alphas[i / depth];
    alpha = alpha << 1 | ((choices[i] & 1u) ^ 1u);
  }
  return alphas;
}

template <gpu::ComputeDevice Device>
DeviceBlocks<Device> OtDevice<Device>::puncture_trees(std::span<const Block> sides,
                                                      std::span<const std::uint8_t> choices,
                                                      unsigned depth, TreeBase base) {
  checked_leaves(0, depth);
  if (sides.size() % depth != 0 || sides.size() != choices.size()) {
    throw argument_error("choices", choices.size(),
                         "one for each of " + std::to_string(sides.size()) +
                             " sides, and a multiple of the depth, " + std::to_string(depth));
  }
  const std::uint64_t count = sides.size() / depth;
  checked_leaves(count, depth);
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::uint32_t> alphas = punctured_leaves(choices, depth);
  const auto own_sides = to_device(sides);
  const auto own_alphas = to_device<std::uint32_t>(alphas);
  wipe(alphas.data(), alphas.size() * sizeof(std::uint32_t));
  const auto missing = allocate<Block>(2 * count);
  const auto keys = tree_keys(base, count, depth);
  const Puncture puncture = {own_sides->data(), own_alphas->data()};
  Trees trees = {count, depth, nullptr, {}, keys->data(), puncture, {}, nullptr};
  const auto sums = allocate<std::uint32_t>(trees.sum_words());
  const auto scratch = allocate<Block>(count << (depth - 1));
  trees.nodes[1] = scratch->data();
  trees.sums = sums->data();
  const Blocks leaves = start_trees(trees);
  for (unsigned level = 1; level < depth; ++level) grow_level<true>(trees, level, true);
  launch(RecoverLeaves{{count}, depth, trees.sums, trees.puncture, missing->data()});
  launch(StoreMissingLeaves{
      {leaves.size()}, depth, trees.puncture.alphas, missing->data(), leaves.data()});
  device().finish();
  return leaves;
}

}  // namespace nescio::ot
