// The implementation of pir/gpu/answer_gpu.h, included once for each device.

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <type_traits>

#include "base/error.h"
#include "dpf/keys_gpu.h"
#include "pir/answer.h"
#include "pir/gpu/answer_gpu.h"
#include "pir/gpu/fused_gpu.h"
#include "pir/gpu/table_gpu_impl.h"
#include "probes/pir_gpu_impl.h"

namespace nescio::pir {

/// Keys that are answered together, in device memory, with the levels of their trees that are expanded
/// so far.
template <gpu::ComputeDevice Device>
struct GpuTable<Device>::Group {
  dpf::GpuKeys keys;
  prg::GeneratorId generator;
  unsigned radix_bits;
  std::uint64_t first_leaf;  ///< first leaf of the shard in the domain
  std::uint64_t leaves;
  std::vector<ggm::GpuNodes> levels;  ///< the stored nodes of each level
  GpuWork work;

  std::uint32_t count() const { return keys.forest.trees; }
  std::uint64_t rows() const { return std::uint64_t{count()} * keys.shape.planes(); }
  /// Returns the ancestors of leaves begin..end-1 at a level.
  ggm::GpuNodes ancestors(unsigned level, std::uint64_t begin, std::uint64_t end) const {
    const unsigned shift = radix_bits * (keys.forest.depth - level);
    return {nullptr, begin >> shift, ((end - 1) >> shift) + 1 - (begin >> shift)};
  }
};

template <gpu::ComputeDevice Device>
void GpuTable<Device>::check(const dpf::Keys& keys, const GpuOptions& options) const {
  dpf::Shape expected = keys.shape();
  expected.domain = shard_.domain;
  expected.output = output_;
  if (keys.shape() != expected) {
    throw Error("a key does not match the table", keys.shape().describe(), expected.describe());
  }
  const bool power = std::has_single_bit(options.run);
  if (!power || options.run < GpuPlan::kMinRun || options.run > GpuPlan::kMaxRun) {
    throw Error(ErrorKind::argument,
                "run: found " + std::to_string(options.run) + ", expected a power of two from " +
                    std::to_string(GpuPlan::kMinRun) + " to " + std::to_string(GpuPlan::kMaxRun));
  }
}

template <gpu::ComputeDevice Device>
GpuWork GpuTable<Device>::answer(const dpf::Keys& keys, const GpuOptions& options,
                                 std::uint8_t* out) {
  if (keys.size() == 0) return {};
  check(keys, options);
  const std::lock_guard<std::mutex> lock(mutex_);
  device_.reset_peak();
  const std::size_t sum_bytes =
      table_.shape.bits()
          ? sum_words<BitOp>(table_.columns) * sizeof(BitOp::Sum)
          : table_.shape.planes() * sum_words<ByteOp>(table_.columns) * sizeof(ByteOp::Sum);
  const GpuPlan plan(keys.size(), table_.shape, sum_bytes);
  const std::size_t bytes = answer_bytes(output_, table_.row_bytes);
  GpuWork work;
  for (std::size_t first = 0; first < keys.size(); first += plan.keys_per_group) {
    const std::size_t count = std::min(plan.keys_per_group, keys.size() - first);
    Group group{};
    load(group, keys, first, count);
    if (table_.shape.bits()) {
      answer_group<BitOp>(group, options, out + first * bytes);
    } else {
      answer_group<ByteOp>(group, options, out + first * bytes);
    }
    work.expansions += group.work.expansions;
    work.leaves += group.work.leaves;
    work.launches += group.work.launches;
  }
  const std::size_t permanent = table_bytes_ + aes_.size() * sizeof(std::uint32_t);
  work.peak_bytes = device_.memory_use().peak - permanent;
  return work;
}

/// Copies keys to the device.
template <gpu::ComputeDevice Device>
void GpuTable<Device>::load(Group& group, const dpf::Keys& keys, std::size_t first,
                            std::size_t count) {
  const ggm::Forest forest = keys.forest(first, count, Tier::portable);
  const dpf::KeysLayout layout(forest, count);
  std::uint8_t* host = host_keys_.at_least(layout.bytes());
  layout.write(keys, first, forest, host);
  Block* own = keys_.at_least(device_, ceil_div(layout.bytes(), sizeof(Block)));
  device_.upload(own, host, layout.bytes());

  const std::uint64_t elements = dpf::leaf_elements(output_);
  group.keys = {{static_cast<std::uint32_t>(count), forest.depth, own, own + layout.corrections,
                 layout.level_blocks, tables_},
                own + layout.leaf_corrections,
                reinterpret_cast<const std::uint8_t*>(own + layout.parties),
                table_.shape};
  group.generator = keys.shape().generator;
  group.radix_bits = forest.generator->radix_bits;
  group.first_leaf = shard_.first_row / elements;
  group.leaves = ceil_div(shard_.first_row + shard_.rows, elements) - group.first_leaf;
  group.levels.assign(forest.depth + 1, {nullptr, 0, 0});
  group.levels[0] = {own, 0, 1};
  if (levels_.size() <= forest.depth) levels_.resize(forest.depth + 1);
}

template <gpu::ComputeDevice Device>
template <gpu::Kernel Kernel>
void GpuTable<Device>::launch(Group& group, const Kernel& kernel) {
  device_.launch(kernel, kernel.grid());
  ++group.work.launches;
}

template <gpu::ComputeDevice Device>
template <class Op>
void GpuTable<Device>::answer_group(Group& group, const GpuOptions& options, std::uint8_t* out) {
  const std::size_t row_words = sum_words<Op>(table_.columns);
  const std::size_t sum_bytes = group.rows() * row_words * sizeof(typename Op::Sum);
  sums_.at_least(device_, ceil_div(sum_bytes, sizeof(std::uint64_t)));
  device_.zero(sums_.data(), sum_bytes);
  prg::with_gpu_generator(group.generator, [&]<class G>() {
    switch (options.strategy) {
      case Strategy::bounded: return bounded<G, Op>(group, options.run);
      case Strategy::cooperative: return cooperative<G, Op>(group);
      default: return slabs<G, Op>(group, options.strategy);
    }
  });
  const std::size_t bytes = answer_bytes(output_, table_.row_bytes);
  std::uint8_t* host = host_answers_.at_least(group.count() * bytes);
  if constexpr (Op::kBits) {
    device_.download_rows(host, sums_.data(), row_words * sizeof(typename Op::Sum), bytes,
                          group.count());
  } else {
    std::uint8_t* answers = answers_.at_least(device_, group.count() * bytes);
    const std::uint32_t element = table_.shape.element_bytes;
    launch(group, FinishWords{sums_.data(), group.count(), table_.columns, element,
                              static_cast<std::uint32_t>(bytes / element), answers});
    device_.download(host, answers, group.count() * bytes);
  }
  device_.finish();
  std::memcpy(out, host, group.count() * bytes);
}

/// For each slab of chunks: expands its bottom nodes, computes their shares, then the product.
template <gpu::ComputeDevice Device>
template <class G, class Op>
void GpuTable<Device>::slabs(Group& group, Strategy strategy) {
  const std::uint64_t all = table_.chunks(), leaves = table_.shape.leaves();
  const std::uint64_t slab =
      strategy == Strategy::level ? all : GpuPlan::slab_chunks(info_, table_.shape, group.count());
  const bool from_roots =
      strategy == Strategy::branch ||
      (strategy == Strategy::automatic && GpuPlan::from_roots(info_, group.leaves * group.count()));
  for (std::uint64_t first = 0; first < all; first += slab) {
    const std::uint64_t chunks = std::min(slab, all - first);
    const std::uint64_t begin = group.first_leaf + first * leaves;
    const std::uint64_t end = std::min(begin + chunks * leaves, group.first_leaf + group.leaves);
    std::uint32_t* shares = shares_.at_least(device_, chunks * group.rows() * dpf::kLineWords);
    if (from_roots) {
      launch(group, dpf::WriteLines<G, true>{
                        group.keys, {nullptr, begin, end - begin}, begin / leaves, chunks, shares});
      group.work.expansions += group.count() * (end - begin) * group.keys.forest.depth;
    } else {
      expand<G>(group, begin, end);
      launch(group, dpf::WriteLines<G, false>{group.keys, group.levels.back(), begin / leaves,
                                              chunks, shares});
    }
    group.work.leaves += group.count() * (end - begin);
    multiply<Op>(group, first, chunks);
  }
}

/// Expands the trees down to bottom nodes begin..end-1. Small upper levels are expanded for the whole
/// shard at once, so later slabs reuse them.
template <gpu::ComputeDevice Device>
template <class G>
void GpuTable<Device>::expand(Group& group, std::uint64_t begin, std::uint64_t end) {
  for (unsigned level = 1; level <= group.keys.forest.depth; ++level) {
    ggm::GpuNodes wanted = group.ancestors(level, begin, end);
    const ggm::GpuNodes& stored = group.levels[level];
    if (stored.count > 0 && stored.first <= wanted.first && wanted.end() <= stored.end()) continue;
    const ggm::GpuNodes all =
        group.ancestors(level, group.first_leaf, group.first_leaf + group.leaves);
    const ggm::GpuNodes& parents = group.levels[level - 1];
    const bool has_parents = parents.first <= all.first >> group.radix_bits &&
                             ((all.end() - 1) >> group.radix_bits) < parents.end();
    const std::size_t bytes = all.count * group.count() * sizeof(Block);
    if (has_parents && bytes <= GpuPlan::small_level(info_)) wanted = all;
    Block* out = levels_[level].at_least(device_, wanted.count * group.count());
    wanted.data = out;
    const ggm::ExpandLevel<G> kernel = {group.keys.forest, level - 1, parents, wanted, out};
    launch(group, kernel);
    group.work.expansions += kernel.parent_count() * group.count();
    group.levels[level] = wanted;
  }
}

/// Adds the product of the shares in `shares_` with their chunks of the table.
template <gpu::ComputeDevice Device>
template <class Op>
void GpuTable<Device>::multiply(Group& group, std::uint64_t first_chunk, std::uint64_t chunks) {
  const ProductArguments<Op> of = {
      shares_.data(), static_cast<std::uint32_t>(group.rows()),         table_, first_chunk,
      chunks,         reinterpret_cast<typename Op::Sum*>(sums_.data())};
  const auto fill_device = [&]<class Kernel>(std::type_identity<Kernel>) {
    // As many blocks as can be resident: a further wave would be partly empty.
    const unsigned resident = device_.resident_blocks(Kernel(of, 1));
    launch(group, Kernel(of, std::uint64_t{resident} * info_.processors));
  };
  switch (GpuPlan::product(info_, table_.shape, group.rows())) {
    case Product::plain:
      if constexpr (Op::kBits) fill_device(std::type_identity<PlainProduct<Op>>());
      return;
    case Product::narrow: return fill_device(std::type_identity<MatrixProduct<Op, 1, 1, 4>>());
    case Product::middle: return fill_device(std::type_identity<MatrixProduct<Op, 2, 2, 2>>());
    case Product::wide: return fill_device(std::type_identity<MatrixProduct<Op, 4, 2, 2>>());
  }
}

template <gpu::ComputeDevice Device>
template <class G, class Op>
void GpuTable<Device>::bounded(Group& group, unsigned run) {
  auto* sums = reinterpret_cast<typename Op::Sum*>(sums_.data());
  BoundedWalk<G, Op> walk = {
      {group.keys, table_, group.first_leaf, group.leaves, sums}, run, nullptr};
  walk.scratch = levels_[0].at_least(device_, walk.scratch_blocks());
  launch(group, walk);
  const std::uint64_t end = group.first_leaf + group.leaves;
  for (unsigned level = 0; level < group.keys.forest.depth; ++level) {
    group.work.expansions += group.count() * group.ancestors(level, group.first_leaf, end).count;
  }
  group.work.leaves += group.count() * group.leaves;
}

template <gpu::ComputeDevice Device>
template <class G, class Op>
void GpuTable<Device>::cooperative(Group& group) {
  auto* sums = reinterpret_cast<typename Op::Sum*>(sums_.data());
  const dpf::GpuKeys all = group.keys;
  const unsigned run = GpuPlan::cooperative_run(info_, table_.shape, group.leaves);
  for (std::uint32_t key = 0; key < all.forest.trees; ++key) {
    ggm::GpuForest& tree = group.keys.forest;
    tree.trees = 1;
    tree.roots = all.forest.roots + key;
    tree.corrections = all.forest.corrections + (std::size_t{key} << group.radix_bits);
    group.keys.leaf_corrections = all.leaf_corrections + std::size_t{key} * prg::kLeafBlocks;
    group.keys.parties = all.parties + key;
    for (ggm::GpuNodes& level : group.levels) level.count = 0;
    group.levels[0] = {tree.roots, 0, 1};
    expand<G>(group, group.first_leaf, group.first_leaf + group.leaves);
    auto* own = sums + key * all.shape.planes() * sum_words<Op>(table_.columns);
    launch(group, MultiplyLeaves<G, Op>{{group.keys, table_, group.first_leaf, group.leaves, own},
                                        group.levels.back(),
                                        run});
    group.work.leaves += group.leaves;
  }
  group.keys = all;
}

}  // namespace nescio::pir
