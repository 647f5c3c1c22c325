// The part of pir/gpu/answer_gpu.h that divides the keys of lookups into batches and copies them to the
// device, included once for each device.

#include <algorithm>
#include <vector>

#include "pir/gpu/answer_gpu.h"
#include "pir/gpu/product_gpu.h"

namespace nescio::pir {

/// Some keys of some bins of a piece. Of a bin's keys, which are counted in the order lookup, key, it has
/// those from `from` on.
template <gpu::ComputeDevice Device>
struct GpuTable<Device>::Part {
  const Piece* piece;
  const dpf::Keys* keys;  ///< of the piece's group: lookup, bin, key
  BinGroup group;
  std::uint64_t first_bin, bins;
  std::size_t from, each;

  std::size_t count() const { return bins * each; }
};

/// The keys of a part in device memory, bin by bin, with the levels of their trees that are expanded so
/// far.
template <gpu::ComputeDevice Device>
struct GpuTable<Device>::Group {
  dpf::GpuKeys keys;
  std::uint32_t keys_per_bin;
  LineTable table;
  std::size_t first_key;  ///< of the batch
  prg::GeneratorId generator;
  unsigned radix_bits;
  std::uint64_t first_leaf;  ///< first leaf of the shard in the domain
  std::uint64_t leaves;
  std::vector<ggm::GpuNodes> levels;  ///< the stored nodes of each level
  GpuWork work;

  std::uint32_t count() const { return keys.forest.trees; }
  std::uint64_t rows() const { return std::uint64_t{count()} * keys.shape.planes(); }
  std::uint64_t rows_per_bin() const { return std::uint64_t{keys_per_bin} * keys.shape.planes(); }
  /// Returns the ancestors of leaves begin..end-1 at a level.
  ggm::GpuNodes ancestors(unsigned level, std::uint64_t begin, std::uint64_t end) const {
    const unsigned shift = radix_bits * (keys.forest.depth - level);
    return {nullptr, begin >> shift, ((end - 1) >> shift) + 1 - (begin >> shift)};
  }
};

/// Divides the keys into batches that fit in the memory for their sums and shares.
template <gpu::ComputeDevice Device>
std::vector<std::vector<typename GpuTable<Device>::Part>> GpuTable<Device>::batches(
    std::span<const dpf::Keys* const> keys, std::size_t lookups) const {
  const std::size_t sum_bytes =
      table_.shape.bits()
          ? sum_words<BitOp>(table_.columns) * sizeof(BitOp::Sum)
          : table_.shape.planes() * sum_words<ByteOp>(table_.columns) * sizeof(ByteOp::Sum);
  const std::size_t most = GpuPlan(SIZE_MAX, table_.shape, sum_bytes).keys_per_group;
  std::vector<std::vector<Part>> all(1);
  std::size_t used = 0;
  const auto add = [&](const Part& part) {
    if (used + part.count() > most && used > 0) {
      all.emplace_back();
      used = 0;
    }
    all.back().push_back(part);
    used += part.count();
  };
  for (const Piece& piece : pieces_) {
    const BinGroup& group = extent_.bins().groups()[piece.bins.group];
    const std::size_t each = lookups * group.keys, step = std::min(each, most);
    const std::uint64_t bins = std::max<std::uint64_t>(1, most / step);
    for (std::uint64_t bin = 0; bin < piece.bins.bins; bin += bins) {
      for (std::size_t from = 0; from < each; from += step) {
        add({&piece, keys[piece.bins.group], group, piece.bins.first_bin + bin,
             std::min(bins, piece.bins.bins - bin), from, std::min(step, each - from)});
      }
    }
  }
  return all;
}

/// Copies keys to the device.
template <gpu::ComputeDevice Device>
std::vector<typename GpuTable<Device>::Group> GpuTable<Device>::load(
    const std::vector<Part>& parts) {
  std::vector<dpf::KeysLayout> layouts;
  std::vector<std::size_t> offsets = {0};  // in blocks
  for (const Part& part : parts) {
    layouts.emplace_back(part.keys->shape(), part.count());
    offsets.push_back(offsets.back() + ceil_div(layouts.back().bytes(), sizeof(Block)));
  }
  auto* host = reinterpret_cast<Block*>(host_keys_.at_least(offsets.back() * sizeof(Block)));
  Block* device = keys_.at_least(device_, offsets.back());
  std::vector<Group> groups;
  std::size_t first_key = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    // nvcc 13.0 does not compile such a list as an argument.
    const dpf::ColumnsOfKeys columns = {part.group.count, part.group.keys, part.first_bin,
                                        part.bins,        part.from,       part.each};
    part.keys->copy(columns, layouts[i].arrays(host + offsets[i]));
    groups.push_back(group_of(part, layouts[i], device + offsets[i], first_key));
    first_key += part.count();
    if (levels_.size() <= layouts[i].depth) levels_.resize(layouts[i].depth + 1);
  }
  device_.upload(device, host, offsets.back() * sizeof(Block));
  return groups;
}

/// Returns the keys of a part, whose copy in device memory begins at `own`.
template <gpu::ComputeDevice Device>
typename GpuTable<Device>::Group GpuTable<Device>::group_of(const Part& part,
                                                            const dpf::KeysLayout& layout,
                                                            const Block* own,
                                                            std::size_t first_key) const {
  const BinPart& rows = part.piece->bins;
  const std::uint64_t elements = dpf::leaf_elements(extent_.output());
  const std::uint64_t first_leaf = rows.first_row / elements;
  Group group = {{{static_cast<std::uint32_t>(part.count()), layout.depth, own,
                   own + layout.corrections, layout.level_blocks, tables_},
                  own + layout.leaf_corrections,
                  reinterpret_cast<const std::uint8_t*>(own + layout.parties),
                  table_.shape},
                 static_cast<std::uint32_t>(part.each),
                 lines_of(*part.piece, part.first_bin),
                 first_key,
                 part.keys->shape().generator,
                 part.keys->shape().radix_bits(),
                 first_leaf,
                 ceil_div(rows.first_row + rows.rows, elements) - first_leaf,
                 std::vector<ggm::GpuNodes>(layout.depth + 1),
                 {}};
  group.levels[0] = {own, 0, 1};
  return group;
}

}  // namespace nescio::pir
