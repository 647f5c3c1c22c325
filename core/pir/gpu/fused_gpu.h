#pragma once

// Walks fused with the product, as in the paper ("GPU-based Private Information Retrieval for
// On-Device Machine Learning Inference", 2024, sections 3.2.3 to 3.2.5): a block expands some leaves
// of one key into shared memory, multiplies them with their rows, and discards them.

#include <cstddef>
#include <cstdint>

#include "dpf/lines_gpu.h"
#include "pir/gpu/plain_product_gpu.h"

namespace nescio::pir {

/// Keys, the part of their domain that the table has, and their sums.
template <class Op>
struct FusedArguments {
  dpf::GpuKeys keys;
  std::uint32_t keys_per_bin;
  LineTable table;
  std::uint64_t first_leaf;  ///< first leaf of the table in the domain; begins a chunk
  std::uint64_t leaves;
  typename Op::Sum* sums;
};

/// Expands the leaves of `count` bottom nodes of a key, which begin a chunk, and adds their product
/// with the table to the key's sums. `lines` is shared memory for the leaves. Called by all threads of
/// a block.
template <class G, class Op, gpu::ThreadBlock B>
NESCIO_DEVICE inline void multiply_leaves(B& block, const G& generator,
                                          const FusedArguments<Op>& of, std::uint32_t key,
                                          const Block* nodes, std::uint64_t first, unsigned count,
                                          std::uint32_t* lines, unsigned threads) {
  const dpf::LineShape shape = of.keys.shape;
  const auto chunks = static_cast<unsigned>(ceil_div(count, shape.leaves()));
  for (unsigned i = block.thread(); i < chunks * shape.leaves(); i += threads) {
    std::uint32_t* to = lines + i / shape.leaves() * shape.planes() * dpf::kLineWords;
    if (i < count) {
      write_leaf(generator, of.keys, key, nodes[i], i % shape.leaves(), to);
    } else {
      write_no_leaf(shape, i % shape.leaves(), to);
    }
  }
  block.sync();
  const std::uint64_t chunk =
      key / of.keys_per_bin * of.table.chunks() + (first - of.first_leaf) / shape.leaves();
  // Each thread has a column, whose line it reads once for all planes: the table is in global memory,
  // the shares are in shared memory, where all threads read the same word.
  constexpr unsigned kPlanes = Op::kBits ? 1 : 16;
  const unsigned planes = shape.planes(), last = of.table.columns - 1;
  const unsigned columns = (last / gpu::kWarp + 1) * gpu::kWarp;  // rounded up to whole warps
  for (unsigned column = block.thread(); column < columns; column += threads) {
    std::uint32_t c[kPlanes] = {};
    for (unsigned k = 0; k < chunks; ++k) {
      gpu::Quad rows[4];
      const auto* from = reinterpret_cast<const gpu::Quad*>(
          of.table.line(chunk + k, column < last ? column : last));
      NESCIO_UNROLL
      for (unsigned q = 0; q < 4; ++q) rows[q] = from[q];
      const auto* shares = reinterpret_cast<const gpu::Quad*>(lines + k * planes * dpf::kLineWords);
      NESCIO_UNROLL
      for (unsigned plane = 0; plane < kPlanes; ++plane) {
        if (plane < planes) c[plane] = dot_lines<Op, B>(shares + plane * 4, rows, c[plane]);
      }
    }
    NESCIO_UNROLL
    for (unsigned plane = 0; plane < kPlanes; ++plane) {
      if (plane >= planes) break;
      add_columns<Op>(block, std::uint64_t{key} * planes + plane, of.table, column, c[plane],
                      of.sums);
    }
  }
  block.sync();
}

/// Memory-bounded traversal. One block per key walks its tree depth first, `run` nodes of a level at a
/// time, and stores one run per level. `run` is a power of two, at least 64.
template <class G, class Op>
struct BoundedWalk {
  static constexpr unsigned kThreads = 128;
  static constexpr bool kCooperative = true;

  FusedArguments<Op> of;
  unsigned run;
  Block* scratch;  ///< `run` nodes per level and key

  std::size_t shared_bytes() const { return G::kSharedBytes + run * sizeof(Block) * 4; }
  std::size_t scratch_blocks() const {
    return std::size_t{of.keys.forest.trees} * (of.keys.forest.depth + 1) * run;
  }
  gpu::Grid grid() const { return {of.keys.forest.trees, 1}; }

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const G generator(block, of.keys.forest.tables, block.shared(), kThreads);
    auto* lines = reinterpret_cast<std::uint32_t*>(block.shared() + G::kSharedBytes);
    const std::uint32_t key = block.x();
    const unsigned depth = of.keys.forest.depth;
    Block* levels = scratch + std::size_t{key} * (depth + 1) * run;
    if (block.thread() == 0) levels[0] = of.keys.forest.roots[key];
    block.sync();
    const std::uint64_t end = of.first_leaf + of.leaves;
    for (std::uint64_t first = of.first_leaf / run * run; first < end; first += run) {
      for (unsigned level = 1; level <= depth; ++level) {
        const bool known =
            first > of.first_leaf && run_of(first - run, level) == run_of(first, level);
        if (!known) expand_run(block, generator, key, level, run_of(first, level), levels);
      }
      const std::uint64_t begin = first < of.first_leaf ? of.first_leaf : first;
      const std::uint64_t stop = first + run < end ? first + run : end;
      multiply_leaves(block, generator, of, key, levels + depth * run + (begin - first), begin,
                      static_cast<unsigned>(stop - begin), lines, kThreads);
    }
  }

 private:
  /// Returns the run of a level with the ancestor of a leaf.
  NESCIO_DEVICE std::uint64_t run_of(std::uint64_t leaf, unsigned level) const {
    return (leaf >> (G::kRadixBits * (of.keys.forest.depth - level))) / run;
  }

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void expand_run(B& block, const G& generator, std::uint32_t key, unsigned level,
                                std::uint64_t index, Block* levels) const {
    constexpr unsigned kArity = 1u << G::kRadixBits;
    const unsigned shift = G::kRadixBits * (of.keys.forest.depth - level);
    const std::uint64_t first = index * run;
    const std::uint64_t wanted = ((of.first_leaf + of.leaves - 1) >> shift) + 1 - first;
    const std::uint64_t count = wanted < run ? wanted : run;
    const std::uint64_t parent = first >> G::kRadixBits;
    const Block* from = levels + (level - 1) * run + parent % run;
    for (unsigned i = block.thread(); i * kArity < count; i += kThreads) {
      Block children[kArity];
      expand_node(generator, of.keys.forest, level - 1, key, from[i], children);
      NESCIO_UNROLL
      for (unsigned j = 0; j < kArity; ++j) {
        if (i * kArity + j < count) levels[level * run + i * kArity + j] = children[j];
      }
    }
    block.sync();
  }
};

/// Expands the leaves of one key's bottom nodes in memory and adds their product. One block per `run`
/// nodes: the last step of a walk on the whole GPU.
template <class G, class Op>
struct MultiplyLeaves {
  static constexpr unsigned kThreads = 128;
  static constexpr bool kCooperative = true;

  FusedArguments<Op> of;
  ggm::GpuNodes nodes;
  unsigned run;

  std::size_t shared_bytes() const { return G::kSharedBytes + run * sizeof(Block) * 4; }
  gpu::Grid grid() const { return {static_cast<std::uint32_t>(ceil_div(of.leaves, run)), 1}; }

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const G generator(block, of.keys.forest.tables, block.shared(), kThreads);
    auto* lines = reinterpret_cast<std::uint32_t*>(block.shared() + G::kSharedBytes);
    const std::uint64_t skip = std::uint64_t{block.x()} * run;
    const std::uint64_t left = of.leaves - skip;
    multiply_leaves(block, generator, of, 0, nodes.data + (of.first_leaf - nodes.first) + skip,
                    of.first_leaf + skip, static_cast<unsigned>(left < run ? left : run), lines,
                    kThreads);
  }
};

}  // namespace nescio::pir
