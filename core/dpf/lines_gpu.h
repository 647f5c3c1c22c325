#pragma once

// Converts bottom nodes of keys to lines of shares (see dpf/lines.h), on a GPU.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "dpf/lines.h"
#include "ggm/walk_gpu.h"

namespace nescio::dpf {

/// Keys in a device's memory.
struct GpuKeys {
  ggm::GpuForest forest;
  const Block* leaf_corrections;  ///< kLeafBlocks per key
  const std::uint8_t* parties;
  LineShape shape;
};

/// A word of 128 bits, with addition only.
struct Wide {
  std::uint64_t lo, hi;
};

NESCIO_INLINE Wide operator+(Wide a, Wide b) {
  const std::uint64_t lo = a.lo + b.lo;
  return {lo, a.hi + b.hi + (lo < a.lo)};
}

/// Returns element i of a leaf of words.
template <class W>
NESCIO_DEVICE inline W take_word(const std::uint32_t* leaf, unsigned i) {
  if constexpr (sizeof(W) == 1) {
    return static_cast<W>(leaf[i / 4] >> (8 * (i % 4)));
  } else if constexpr (sizeof(W) == 4) {
    return leaf[i];
  } else if constexpr (sizeof(W) == 8) {
    return leaf[2 * i] | static_cast<std::uint64_t>(leaf[2 * i + 1]) << 32;
  } else {
    return {leaf[4 * i] | static_cast<std::uint64_t>(leaf[4 * i + 1]) << 32,
            leaf[4 * i + 2] | static_cast<std::uint64_t>(leaf[4 * i + 3]) << 32};
  }
}

/// Returns (-1)^party (x + t c), the share of one element.
template <class W>
NESCIO_DEVICE inline W correct_word(W x, W correction, std::uint64_t t, std::uint64_t party) {
  if constexpr (sizeof(W) == 16) {
    const std::uint64_t mask = mask_from_bit(t), sign = mask_from_bit(party);
    x = x + Wide{correction.lo & mask, correction.hi & mask};
    return Wide{x.lo ^ sign, x.hi ^ sign} + Wide{party, 0};
  } else {
    const W sign = static_cast<W>(mask_from_bit(party));
    x = static_cast<W>(x + (correction & static_cast<W>(mask_from_bit(t))));
    return static_cast<W>((x ^ sign) - sign);
  }
}

template <class W>
NESCIO_DEVICE inline std::uint32_t byte_of(W x, unsigned i) {
  if constexpr (sizeof(W) == 16) {
    return static_cast<std::uint32_t>((i < 8 ? x.lo : x.hi) >> (8 * (i % 8))) & 0xFF;
  } else {
    return static_cast<std::uint32_t>(x >> (8 * i)) & 0xFF;
  }
}

/// Writes a corrected leaf of words to the planes of its chunk. `lines` is this key's first line of the
/// chunk; `position` is the leaf's index in the chunk.
template <class W>
NESCIO_DEVICE inline void write_planes(const std::uint32_t* leaf, const std::uint32_t* correction,
                                       std::uint64_t t, std::uint64_t party, unsigned position,
                                       std::uint32_t* lines) {
  constexpr unsigned kPlanes = sizeof(W), kWords = kLineWords / kPlanes;
  std::uint32_t planes[kPlanes][kWords] = {};
  NESCIO_UNROLL
  for (unsigned i = 0; i < 4 * kWords; ++i) {
    const W x = correct_word(take_word<W>(leaf, i), take_word<W>(correction, i), t, party);
    NESCIO_UNROLL
    for (unsigned b = 0; b < kPlanes; ++b) planes[b][i / 4] |= byte_of(x, b) << (8 * (i % 4));
  }
  NESCIO_UNROLL
  for (unsigned b = 0; b < kPlanes; ++b) {
    std::uint32_t* to = lines + b * kLineWords + position * kWords;
    NESCIO_UNROLL
    for (unsigned w = 0; w < kWords; ++w) {
      if constexpr (kWords < 4) {
        to[w] = planes[b][w];
      } else if (w % 4 == 0) {  // sixteen bytes at once
        const auto& own = planes[b];
        reinterpret_cast<gpu::Quad*>(to)[w / 4] = {own[w], own[w + 1], own[w + 2], own[w + 3]};
      }
    }
  }
}

/// Writes the shares of a bottom node's leaf.
template <class G>
NESCIO_DEVICE inline void write_leaf(const G& generator, const GpuKeys& keys, std::uint32_t key,
                                     Block node, unsigned position, std::uint32_t* lines) {
  Block leaf[prg::kLeafBlocks];
  generator.leaf(node, leaf);
  const Block* correction = keys.leaf_corrections + prg::kLeafBlocks * key;
  const std::uint64_t t = control_bit(node);
  if (keys.shape.bits()) {
    NESCIO_UNROLL
    for (unsigned j = 0; j < prg::kLeafBlocks; ++j) {
      const Block share = leaf[j] ^ (block_mask(t) & correction[j]);
      reinterpret_cast<Block*>(lines)[j] = share;
    }
    return;
  }
  std::uint32_t own[kLineWords], add[kLineWords];
  NESCIO_UNROLL
  for (unsigned j = 0; j < prg::kLeafBlocks; ++j) {
    prg::BlockWords<std::uint32_t>::split(leaf[j], own + 4 * j);
    prg::BlockWords<std::uint32_t>::split(correction[j], add + 4 * j);
  }
  const std::uint64_t party = keys.parties[key];
  switch (keys.shape.element_bytes) {
    case 1: return write_planes<std::uint8_t>(own, add, t, party, position, lines);
    case 4: return write_planes<std::uint32_t>(own, add, t, party, position, lines);
    case 8: return write_planes<std::uint64_t>(own, add, t, party, position, lines);
    default: return write_planes<Wide>(own, add, t, party, position, lines);
  }
}

/// Writes zeros in place of a leaf of the chunk that is outside the tree.
NESCIO_DEVICE inline void write_no_leaf(LineShape shape, unsigned position, std::uint32_t* lines) {
  const unsigned words = kLineWords / shape.planes();
  for (unsigned b = 0; b < shape.planes(); ++b) {
    for (unsigned w = 0; w < words; ++w) lines[b * kLineWords + position * words + w] = 0;
  }
}

/// Writes the lines of whole chunks for all keys, from the bottom nodes or, with `from_roots`, from the
/// keys alone. One thread per leaf.
template <class G, bool from_roots>
struct WriteLines {
  static constexpr unsigned kThreads = 128;
  static constexpr bool kCooperative = G::kSharedBytes > 0;

  GpuKeys keys;
  ggm::GpuNodes nodes;        ///< the leaves of the chunks; their data is not read if from_roots
  std::uint64_t first_chunk;  ///< the first chunk of `lines`
  std::uint64_t chunks;
  std::uint32_t* lines;

  std::size_t shared_bytes() const { return G::kSharedBytes; }
  NESCIO_DEVICE std::uint64_t threads() const {
    return chunks * keys.shape.leaves() * keys.forest.trees;
  }
  gpu::Grid grid() const { return {static_cast<std::uint32_t>(ceil_div(threads(), kThreads)), 1}; }

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const G generator(block, keys.forest.tables, kCooperative ? block.shared() : nullptr, kThreads);
    // 32-bit divisions suffice: the lines of 2^32 leaves do not fit in memory.
    const std::uint32_t id = block.x() * kThreads + block.thread();
    if (id >= threads()) return;
    const std::uint32_t trees = keys.forest.trees, leaves = keys.shape.leaves();
    const std::uint32_t key = id % trees, leaf = id / trees, position = leaf % leaves;
    const std::uint64_t chunk = leaf / leaves;
    const std::uint64_t node = first_chunk * leaves + leaf;
    std::uint32_t* to = lines + (chunk * trees + key) * keys.shape.planes() * kLineWords;
    if (node < nodes.first || node >= nodes.end()) return write_no_leaf(keys.shape, position, to);
    Block bottom;
    if constexpr (from_roots) {
      bottom = ggm::descend(generator, keys.forest, key, node);
    } else {
      bottom = nodes.data[(node - nodes.first) * trees + key];
    }
    write_leaf(generator, keys, key, bottom, position, to);
  }
};

}  // namespace nescio::dpf
