// The body of pir/answer_gpu.h, included once for each device.

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "base/buffer.h"
#include "base/error.h"
#include "dpf/keys_gpu.h"
#include "pir/answer.h"
#include "pir/answer_gpu.h"
#include "pir/fused_gpu.h"
#include "pir/limits_gpu_impl.h"

namespace nescio::pir {

/// Keys first..first+keys-1 of a batch in the device's memory, with as much of their trees as has
/// been grown.
template <class Device>
struct GpuTable<Device>::Pass {
  dpf::GpuKeys keys;
  std::uint64_t first_leaf;  ///< of the shard, in the domain
  std::uint64_t leaves;
  unsigned radix_bits;
  prg::GeneratorId generator;
  std::vector<ggm::GpuNodes> levels;  ///< what is held of each level
  GpuWork work;

  std::uint32_t count() const { return keys.forest.trees; }
  std::uint64_t rows() const { return std::uint64_t{count()} * keys.shape.planes(); }
};

template <class Device>
GpuTable<Device>::GpuTable(unsigned device, const GpuShard& shard, std::size_t row_bytes,
                           dpf::Output output)
    : device_(device), info_(device_.info()), output_(output), shard_(shard) {
  const Extent extent = {shard.rows, row_bytes, layout_for(output)};
  static_cast<void>(extent.bytes());  // refuses what no address space holds
  if (shard.first_row % kTileRows != 0 || shard.first_row + shard.rows > shard.domain) {
    throw Error(ErrorKind::argument, "rows " + std::to_string(shard.first_row) + " to " +
                                         std::to_string(shard.first_row + shard.rows) +
                                         " are no part of a table of " +
                                         std::to_string(shard.domain) + " rows");
  }
  const dpf::LineShape shape(output);
  table_ = {
      nullptr, shape, shard.rows, static_cast<std::uint32_t>(row_bytes),
      static_cast<std::uint32_t>(LineTable::columns_for(shape, answer_bytes(output, row_bytes)))};
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
                             bool on_device) {
  if (first > table_.rows || count > table_.rows - first || first % kTileRows != 0) {
    throw Error(ErrorKind::index, "rows " + std::to_string(first) + " to " +
                                      std::to_string(first + count) + " of a table of " +
                                      std::to_string(table_.rows) + " rows");
  }
  if (count == 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (on_device) {
    device_.settle();  // the rows may still be on their way, on a stream that is not known here
  } else {
    const std::size_t bytes = count * table_.row_bytes;
    device_.upload(staging_.at_least(device_, bytes), rows, bytes);
    rows = staging_.data();
  }
  const TakeRows take = {table_, rows, first, count};
  device_.launch(take, take.grid());
  device_.finish();
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
}

template <class Device>
void GpuTable<Device>::check(const dpf::Keys& keys, const GpuOptions& options) const {
  dpf::Shape expected = keys.shape();
  expected.domain = shard_.domain;
  expected.output = output_;
  if (keys.shape() != expected) {
    throw Error("a key is not for this table", keys.shape().describe(), expected.describe());
  }
  const bool power = std::has_single_bit(options.run);
  if (!power || options.run < GpuPlan::kLeastRun || options.run > GpuPlan::kMostRun) {
    throw Error(ErrorKind::argument, "nodes at a time: found " + std::to_string(options.run) +
                                         ", expected a power of two from " +
                                         std::to_string(GpuPlan::kLeastRun) + " to " +
                                         std::to_string(GpuPlan::kMostRun));
  }
}

template <class Device>
GpuWork GpuTable<Device>::answer(const dpf::Keys& keys, const GpuOptions& options,
                                 std::uint8_t* out) {
  if (keys.size() == 0) return {};
  check(keys, options);
  const std::lock_guard<std::mutex> lock(mutex_);
  device_.forget_peak();
  const std::size_t planes = table_.shape.planes();
  const std::size_t sum_bytes =
      table_.shape.bits() ? table_.columns / 8 : planes * table_.columns * sizeof(std::uint64_t);
  const GpuPlan plan(keys.size(), sum_bytes);
  const std::size_t bytes = answer_bytes(output_, table_.row_bytes);
  GpuWork work;
  for (std::size_t first = 0; first < keys.size(); first += plan.keys_per_pass) {
    const std::size_t count = std::min(plan.keys_per_pass, keys.size() - first);
    Pass of{};
    load(of, keys, first, count);
    if (table_.shape.bits()) {
      pass<BitOp>(of, options, out + first * bytes);
    } else {
      pass<ByteOp>(of, options, out + first * bytes);
    }
    work.expansions += of.work.expansions;
    work.leaves += of.work.leaves;
    work.launches += of.work.launches;
  }
  const std::size_t lasting = table_bytes_ + aes_.size() * sizeof(std::uint32_t);
  work.peak_bytes = device_.memory_use().most - lasting;
  return work;
}

/// Brings keys to the device.
template <class Device>
void GpuTable<Device>::load(Pass& pass, const dpf::Keys& keys, std::size_t first,
                            std::size_t count) {
  const ggm::Forest forest = keys.forest(first, count, Tier::portable);
  const dpf::KeysLayout layout(forest, count);
  std::uint8_t* host = host_keys_.at_least(layout.bytes());
  layout.write(keys, first, forest, host);
  Block* own = keys_.at_least(device_, gpu::parts(layout.bytes(), sizeof(Block)));
  device_.upload(own, host, layout.bytes());

  const std::uint64_t elements = dpf::leaf_elements(output_);
  pass.keys = {{static_cast<std::uint32_t>(count), forest.depth, own, own + layout.corrections,
                layout.level_blocks, tables_},
               own + layout.leaf_corrections,
               reinterpret_cast<const std::uint8_t*>(own + layout.parties),
               table_.shape};
  pass.generator = keys.shape().generator;
  pass.radix_bits = forest.generator->radix_bits;
  pass.first_leaf = shard_.first_row / elements;
  pass.leaves = gpu::parts(shard_.first_row + shard_.rows, elements) - pass.first_leaf;
  pass.levels.assign(forest.depth + 1, {nullptr, 0, 0});
  pass.levels[0] = {own, 0, 1};
  if (levels_.size() <= forest.depth) levels_.resize(forest.depth + 1);
}

template <class Device>
template <class Kernel>
void GpuTable<Device>::launch(Pass& pass, const Kernel& kernel) {
  device_.launch(kernel, kernel.grid());
  ++pass.work.launches;
}

template <class Device>
template <class Op>
void GpuTable<Device>::pass(Pass& pass, const GpuOptions& options, std::uint8_t* out) {
  const std::size_t words = pass.rows() * sum_words<Op>(table_.columns);
  const std::size_t sum_bytes = words * sizeof(typename Op::Sum);
  sums_.at_least(device_, gpu::parts(sum_bytes, sizeof(std::uint64_t)));
  device_.zero(sums_.data(), sum_bytes);
  prg::with_gpu_generator(pass.generator, [&]<class G>() {
    switch (options.strategy) {
      case Strategy::bounded: return bounded<G, Op>(pass, options.run);
      case Strategy::cooperative: return cooperative<G, Op>(pass, options.run);
      default: return slabs<G, Op>(pass, options.strategy);
    }
  });
  const std::size_t bytes = answer_bytes(output_, table_.row_bytes);
  std::uint8_t* host = host_answers_.at_least(pass.count() * bytes);
  if constexpr (Op::kBits) {
    device_.download_rows(host, sums_.data(), table_.columns / 8, bytes, pass.count());
  } else {
    std::uint8_t* answers = answers_.at_least(device_, pass.count() * bytes);
    const std::uint32_t element = table_.shape.element_bytes;
    launch(pass, FinishWords{sums_.data(), pass.count(), table_.columns, element,
                             static_cast<std::uint32_t>(bytes / element), answers});
    device_.download(host, answers, pass.count() * bytes);
  }
  device_.finish();
  std::memcpy(out, host, pass.count() * bytes);
}

/// A slab of chunks after the other: its bottom nodes, their shares, the product.
template <class Device>
template <class G, class Op>
void GpuTable<Device>::slabs(Pass& pass, Strategy strategy) {
  const std::uint64_t all = table_.chunks(), leaves = table_.shape.leaves();
  const std::uint64_t slab =
      strategy == Strategy::level ? all : GpuPlan::slab_chunks(info_, table_.shape, pass.count());
  const std::uint64_t end = pass.first_leaf + pass.leaves;
  for (std::uint64_t first = 0; first < all; first += slab) {
    const std::uint64_t chunks = std::min(slab, all - first);
    const std::uint64_t begin = pass.first_leaf + first * leaves;
    const std::uint64_t stop = std::min(begin + chunks * leaves, end);
    std::uint32_t* shares = shares_.at_least(device_, chunks * pass.rows() * dpf::kLineWords);
    const std::uint64_t chunk = begin / leaves;
    if (strategy == Strategy::branch) {
      launch(pass, dpf::WriteLines<G, true>{
                       pass.keys, {nullptr, begin, stop - begin}, chunk, chunks, shares});
      pass.work.expansions += pass.count() * (stop - begin) * pass.keys.forest.depth;
    } else {
      grow<G>(pass, begin, stop);
      launch(pass, dpf::WriteLines<G, false>{pass.keys, pass.levels.back(), chunk, chunks, shares});
    }
    pass.work.leaves += pass.count() * (stop - begin);
    multiply<Op>(pass, first, chunks);
  }
}

/// Grows the trees down to bottom nodes begin..end-1. Upper levels that are small enough are grown
/// for the whole shard at once, so that later slabs find them.
template <class Device>
template <class G>
void GpuTable<Device>::grow(Pass& pass, std::uint64_t begin, std::uint64_t end) {
  const unsigned depth = pass.keys.forest.depth;
  const std::uint64_t first = pass.first_leaf, last = first + pass.leaves;
  for (unsigned level = 1; level <= depth; ++level) {
    const unsigned shift = pass.radix_bits * (depth - level);
    const auto nodes = [shift](std::uint64_t from, std::uint64_t to) {
      return ggm::GpuNodes{nullptr, from >> shift, ((to - 1) >> shift) + 1 - (from >> shift)};
    };
    ggm::GpuNodes wanted = nodes(begin, end);
    const ggm::GpuNodes& held = pass.levels[level];
    if (held.count > 0 && held.first <= wanted.first && wanted.end() <= held.end()) continue;
    const ggm::GpuNodes all = nodes(first, last);
    const ggm::GpuNodes& parents = pass.levels[level - 1];
    const bool has_parents = parents.first <= all.first >> pass.radix_bits &&
                             ((all.end() - 1) >> pass.radix_bits) < parents.end();
    if (has_parents && all.count * pass.count() * sizeof(Block) <= GpuPlan::small_level(info_))
      wanted = all;
    wanted.data = levels_[level].at_least(device_, wanted.count * pass.count());
    const ggm::ExpandLevel<G> expand = {pass.keys.forest, level - 1, parents, wanted};
    launch(pass, expand);
    pass.work.expansions += expand.parent_count() * pass.count();
    pass.levels[level] = wanted;
  }
}

/// Adds the product of the shares in `shares_` with their chunks.
template <class Device>
template <class Op>
void GpuTable<Device>::multiply(Pass& pass, std::uint64_t first_chunk, std::uint64_t chunks) {
  auto* sums = reinterpret_cast<typename Op::Sum*>(sums_.data());
  const ProductArguments<Op> of = {
      shares_.data(), static_cast<std::uint32_t>(pass.rows()), table_, first_chunk, chunks, sums};
  const std::uint64_t blocks = GpuPlan::kBlocksPerProcessor * info_.processors;
  switch (GpuPlan::product(info_, table_.shape, pass.rows())) {
    case Product::plain: return launch(pass, PlainProduct<Op>(of, blocks));
    case Product::narrow: return launch(pass, MatrixProduct<Op, 1, 1, 4>(of, blocks));
    case Product::middle: return launch(pass, MatrixProduct<Op, 2, 2, 2>(of, blocks));
    case Product::wide: return launch(pass, MatrixProduct<Op, 4, 2, 2>(of, blocks));
  }
}

template <class Device>
template <class G, class Op>
void GpuTable<Device>::bounded(Pass& pass, unsigned run) {
  auto* sums = reinterpret_cast<typename Op::Sum*>(sums_.data());
  BoundedWalk<G, Op> walk = {{pass.keys, table_, pass.first_leaf, pass.leaves, sums}, run, nullptr};
  if (levels_.empty()) levels_.resize(1);
  walk.scratch = levels_[0].at_least(device_, walk.scratch_blocks());
  launch(pass, walk);
  const unsigned depth = pass.keys.forest.depth;
  for (unsigned level = 0; level < depth; ++level) {
    const unsigned shift = pass.radix_bits * (depth - level);
    const std::uint64_t last = pass.first_leaf + pass.leaves - 1;
    pass.work.expansions += pass.count() * ((last >> shift) + 1 - (pass.first_leaf >> shift));
  }
  pass.work.leaves += pass.count() * pass.leaves;
}

template <class Device>
template <class G, class Op>
void GpuTable<Device>::cooperative(Pass& pass, unsigned run) {
  auto* sums = reinterpret_cast<typename Op::Sum*>(sums_.data());
  const dpf::GpuKeys all = pass.keys;
  for (std::uint32_t key = 0; key < all.forest.trees; ++key) {
    pass.keys.forest.trees = 1;
    pass.keys.forest.roots = all.forest.roots + key;
    pass.keys.forest.corrections = all.forest.corrections + (std::size_t{key} << pass.radix_bits);
    pass.keys.leaf_corrections = all.leaf_corrections + std::size_t{key} * prg::kLeafBlocks;
    pass.keys.parties = all.parties + key;
    for (ggm::GpuNodes& level : pass.levels) level.count = 0;
    pass.levels[0] = {const_cast<Block*>(pass.keys.forest.roots), 0, 1};
    grow<G>(pass, pass.first_leaf, pass.first_leaf + pass.leaves);
    launch(pass, MultiplyLeaves<G, Op>{
                     {pass.keys, table_, pass.first_leaf, pass.leaves,
                      sums + key * table_.shape.planes() * sum_words<Op>(table_.columns)},
                     pass.levels.back(),
                     run});
    pass.work.leaves += pass.leaves;
  }
  pass.keys = all;
}

}  // namespace nescio::pir
