#pragma once

// The layout of weights and activations for bit-serial products on a GPU. A tile is an operand of
// one matrix instruction (gpu/thread_block.h), in an order in which each lane reads its share in
// one access.
//
//   weights       16 rows x 256 columns of one plane: one quad per lane, in the order of A
//   activations   256 columns x 8 planes: one pair of words per lane, in the order of B
//
// A word has 32 columns, and a chunk of 256 columns has eight words. Tiles are zero beyond the last
// row and column.

#include <cstddef>
#include <cstdint>

#include "gpu/thread_block.h"

namespace nescio::bitserial {

inline constexpr unsigned kTileRows = 16;
inline constexpr unsigned kTilePlanes = 8;
inline constexpr unsigned kChunkWords = 8;
inline constexpr unsigned kChunkColumns = 32 * kChunkWords;

/// A lane's share of a tile of activations.
struct alignas(8) Pair {
  std::uint32_t w[2];
};

/// Weights in device memory. The tiles of sixteen rows are contiguous, ordered by plane, from the
/// highest, then by chunk.
struct WeightTiles {
  const gpu::Quad* quads;
  std::uint32_t rows;
  std::uint32_t columns;
  std::uint32_t bits;

  NESCIO_INLINE std::uint32_t row_tiles() const {
    return static_cast<std::uint32_t>(ceil_div(rows, kTileRows));
  }
  NESCIO_INLINE std::uint32_t chunks() const {
    return static_cast<std::uint32_t>(ceil_div(columns, kChunkColumns));
  }
  /// The number of tiles of sixteen rows.
  NESCIO_INLINE std::uint32_t tile_count() const { return bits * chunks(); }
  NESCIO_INLINE const gpu::Quad* tiles_of(std::uint32_t row_tile) const {
    return quads + std::uint64_t{row_tile} * tile_count() * gpu::kWarp;
  }
  NESCIO_INLINE std::uint64_t quad_count() const {
    return std::uint64_t{row_tiles()} * tile_count() * gpu::kWarp;
  }
};

/// Packs planes (planes.h) into tiles, one thread per word.
struct PackWeights {
  static constexpr unsigned kThreads = 128;
  static constexpr bool kCooperative = false;

  WeightTiles tiles;
  const std::uint32_t* planes;  ///< bits x rows x row_words
  std::uint32_t row_words;      ///< words of 32 columns per row
  std::uint32_t* to;

  NESCIO_INLINE std::uint64_t words() const { return 4 * tiles.quad_count(); }
  gpu::Grid grid() const { return {static_cast<std::uint32_t>(ceil_div(words(), kThreads)), 1}; }

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const std::uint64_t id = std::uint64_t{block.x()} * kThreads + block.thread();
    if (id >= words()) return;
    const auto i = static_cast<std::uint32_t>(id % 4);
    const auto lane = static_cast<std::uint32_t>(id / 4 % gpu::kWarp);
    const std::uint64_t tile = id / (4 * gpu::kWarp);
    const auto tile_index = static_cast<std::uint32_t>(tile % tiles.tile_count());
    const std::uint64_t row = tile / tiles.tile_count() * kTileRows + lane / 4 + 8 * (i % 2);
    const std::uint32_t word = tile_index % tiles.chunks() * kChunkWords + lane % 4 + 4 * (i / 2);
    const std::uint32_t plane = tiles.bits - 1 - tile_index / tiles.chunks();
    const bool there = row < tiles.rows && word < row_words;
    to[id] = there ? planes[(plane * std::uint64_t{tiles.rows} + row) * row_words + word] : 0;
  }
};

/// Activations of k bits in tiles. A vector has k / 8 tiles per chunk. For each chunk, the tiles of
/// all vectors of a slice are contiguous.
struct VectorTiles {
  std::uint32_t batch;
  std::uint32_t columns;
  std::uint32_t bits;         ///< k
  std::uint32_t slice_tiles;  ///< tiles per chunk of a slice

  NESCIO_INLINE std::uint32_t chunks() const {
    return static_cast<std::uint32_t>(ceil_div(columns, kChunkColumns));
  }
  NESCIO_INLINE std::uint32_t tiles() const { return bits / kTilePlanes; }
  NESCIO_INLINE std::uint32_t slice_vectors() const { return slice_tiles / tiles(); }
  NESCIO_INLINE std::uint32_t slices() const {
    return static_cast<std::uint32_t>(ceil_div(batch, slice_vectors()));
  }
  NESCIO_INLINE std::uint64_t slice_pairs() const {
    return std::uint64_t{chunks()} * slice_tiles * gpu::kWarp;
  }

  /// The index, among the words of a slice, of a word of a plane of vector `vector` of the slice.
  NESCIO_INLINE std::uint64_t word_index(std::uint32_t vector, std::uint32_t plane,
                                         std::uint32_t word) const {
    const std::uint32_t tile = vector * tiles() + plane / kTilePlanes;
    const std::uint32_t lane = 4 * (plane % kTilePlanes) + word % 4;
    const std::uint64_t chunk = word / kChunkWords;
    return ((chunk * slice_tiles + tile) * gpu::kWarp + lane) * 2 + word % kChunkWords / 4;
  }
};

}  // namespace nescio::bitserial
