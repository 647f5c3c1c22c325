// The implementation of pir/gpu/answer_gpu.h, included once for each device.

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <type_traits>

#include "base/error.h"
#include "pir/answer.h"
#include "pir/gpu/answer_gpu.h"
#include "pir/gpu/batch_gpu_impl.h"
#include "pir/gpu/fused_gpu.h"
#include "pir/gpu/table_gpu_impl.h"
#include "probes/pir_gpu_impl.h"

namespace nescio::pir {

inline void check_run(unsigned run) {
  if (std::has_single_bit(run) && run >= GpuPlan::kMinRun && run <= GpuPlan::kMaxRun) return;
  throw Error(ErrorKind::argument,
              "run: found " + std::to_string(run) + ", expected a power of two from " +
                  std::to_string(GpuPlan::kMinRun) + " to " + std::to_string(GpuPlan::kMaxRun));
}

template <gpu::ComputeDevice Device>
GpuWork GpuTable<Device>::answer(std::span<const dpf::Keys* const> keys, const GpuOptions& options,
                                 std::uint8_t* out) {
  const std::size_t lookups = count_lookups(extent_, keys);
  if (lookups == 0) return {};
  check_run(options.run);
  if (shard_.rows < extent_.rows()) {
    const std::size_t bytes = answer_bytes(extent_.output(), extent_.row_bytes());
    std::memset(out, 0, lookups * extent_.bins().slots() * bytes);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  device_.reset_peak();
  GpuWork work;
  for (const std::vector<Part>& parts : batches(keys, lookups)) {
    answer_batch(parts, options, work, out);
  }
  const std::size_t permanent = table_bytes_ + aes_.size() * sizeof(std::uint32_t);
  work.peak_bytes = device_.memory_use().peak - permanent;
  return work;
}

template <gpu::ComputeDevice Device>
template <gpu::Kernel Kernel>
void GpuTable<Device>::launch(Group& group, const Kernel& kernel) {
  device_.launch(kernel, kernel.grid());
  ++group.work.launches;
}

template <gpu::ComputeDevice Device>
void GpuTable<Device>::answer_batch(const std::vector<Part>& parts, const GpuOptions& options,
                                    GpuWork& work, std::uint8_t* out) {
  std::vector<Group> groups = load(parts);
  const std::size_t keys = groups.back().first_key + groups.back().count();
  const bool bits = table_.shape.bits();
  bits ? add_up<BitOp>(groups, options) : add_up<ByteOp>(groups, options);
  const std::uint8_t* answers = bits ? download<BitOp>(keys) : download<ByteOp>(keys);
  work.launches += bits ? 0 : 1;
  for (const Group& group : groups) {
    work.expansions += group.work.expansions;
    work.leaves += group.work.leaves;
    work.launches += group.work.launches;
  }
  const std::size_t bytes = answer_bytes(extent_.output(), extent_.row_bytes());
  const Bins& bins = extent_.bins();
  for (const Part& part : parts) {
    const std::uint64_t first = bins.first_slot(part.piece->bins.group), run = part.group.keys;
    for (std::uint64_t bin = part.first_bin; bin < part.first_bin + part.bins; ++bin) {
      for (std::size_t i = part.from; i < part.from + part.each; ++i, answers += bytes) {
        const std::uint64_t slot = i / run * bins.slots() + first + bin * run + i % run;
        std::memcpy(out + slot * bytes, answers, bytes);
      }
    }
  }
}

template <gpu::ComputeDevice Device>
template <class Op>
typename Op::Sum* GpuTable<Device>::sums_of(const Group& group) {
  const std::size_t rows = group.first_key * table_.shape.planes();
  return reinterpret_cast<typename Op::Sum*>(sums_.data()) + rows * sum_words<Op>(table_.columns);
}

/// Adds up the products of all keys, in `sums_`.
template <gpu::ComputeDevice Device>
template <class Op>
void GpuTable<Device>::add_up(std::vector<Group>& groups, const GpuOptions& options) {
  std::size_t rows = 0;
  for (const Group& group : groups) rows += group.rows();
  const std::size_t bytes = rows * sum_words<Op>(table_.columns) * sizeof(typename Op::Sum);
  sums_.at_least(device_, ceil_div(bytes, sizeof(std::uint64_t)));
  device_.zero(sums_.data(), bytes);
  for (Group& group : groups) {
    prg::with_gpu_generator(group.generator, [&]<class G>() {
      switch (options.strategy) {
        case Strategy::bounded: return bounded<G, Op>(group, options.run);
        case Strategy::cooperative: return cooperative<G, Op>(group);
        default: return slabs<G, Op>(group, options.strategy);
      }
    });
  }
}

/// Returns the answers to the keys of a batch, in host memory, one after the other.
template <gpu::ComputeDevice Device>
template <class Op>
const std::uint8_t* GpuTable<Device>::download(std::size_t keys) {
  const std::size_t bytes = answer_bytes(extent_.output(), table_.row_bytes);
  std::uint8_t* host = host_answers_.at_least(keys * bytes);
  if constexpr (Op::kBits) {
    const std::size_t row = sum_words<Op>(table_.columns) * sizeof(typename Op::Sum);
    device_.download_rows(host, sums_.data(), row, bytes, keys);
  } else {
    std::uint8_t* answers = answers_.at_least(device_, keys * bytes);
    const std::uint32_t element = table_.shape.element_bytes;
    const FinishWords kernel = {sums_.data(),
                                static_cast<std::uint32_t>(keys),
                                table_.columns,
                                element,
                                static_cast<std::uint32_t>(bytes / element),
                                answers};
    device_.launch(kernel, kernel.grid());
    device_.download(host, answers, keys * bytes);
  }
  device_.finish();
  return host;
}

/// For each slab of chunks: expands its bottom nodes, computes their shares, then the product.
template <gpu::ComputeDevice Device>
template <class G, class Op>
void GpuTable<Device>::slabs(Group& group, Strategy strategy) {
  const std::uint64_t all = group.table.chunks(), leaves = table_.shape.leaves();
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
  const ProductArguments<Op> of = {shares_.data(),
                                   static_cast<std::uint32_t>(group.rows_per_bin()),
                                   group.count() / group.keys_per_bin,
                                   group.table,
                                   first_chunk,
                                   chunks,
                                   sums_of<Op>(group)};
  const auto fill_device = [&]<class Kernel>(std::type_identity<Kernel>) {
    // As many blocks as can be resident: a further wave would be partly empty.
    const unsigned resident = device_.resident_blocks(Kernel(of, 1));
    launch(group, Kernel(of, std::uint64_t{resident} * info_.processors));
  };
  switch (GpuPlan::product(info_, table_.shape, group.rows_per_bin())) {
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
  BoundedWalk<G, Op> walk = {{group.keys, group.keys_per_bin, group.table, group.first_leaf,
                              group.leaves, sums_of<Op>(group)},
                             run,
                             nullptr};
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
  auto* sums = sums_of<Op>(group);
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
    LineTable table = group.table;
    table.lines = table.line(key / group.keys_per_bin * table.chunks(), 0);
    auto* own = sums + key * all.shape.planes() * sum_words<Op>(table_.columns);
    launch(group, MultiplyLeaves<G, Op>{{group.keys, 1, table, group.first_leaf, group.leaves, own},
                                        group.levels.back(),
                                        run});
    group.work.leaves += group.leaves;
  }
  group.keys = all;
}

}  // namespace nescio::pir
