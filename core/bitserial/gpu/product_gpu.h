#pragma once

// The bit-serial product of weights and activations on a GPU (thesis of M. Lam, section 3.3): each
// plane of the weights is ANDed with each plane of the activations and the ones are counted, by AND
// and population count or by the matrix instruction that does both.
//
// Eight warps compute sixteen rows of a slice of vectors. They divide the tiles of these rows, with
// planes from the highest to the lowest, and use Horner's rule: before the next plane the sums are
// doubled, and after the highest plane, the sign, also negated. Sums fit in 32 bits: |sum| <= 2^8 x
// 2^22. Weights of one bit are -1 or 1: their product is twice that of the plane minus that of a
// plane of ones. At the end, sums are multiplied by the weights of the activations' planes and
// added over the warps, in 64 bits.

#include <cstddef>
#include <cstdint>

#include "bitserial/gpu/activations_gpu.h"

namespace nescio::bitserial {

/// The destination of products: integers, or floats, times the step of the vector and the scale of
/// the row, plus the bias of the row.
struct Products {
  std::int64_t* integers;  ///< null for floats
  float* floats;
  const float* scale;
  const float* bias;  ///< null for none
};

/// Accumulators of tiles by AND and population count: for the two rows of a lane, the partial sums
/// over its words for each plane of the activations.
template <unsigned kTiles>
struct PopcountSums {
  /// Tiles of weights that a warp prefetches; a wide slice leaves registers for two.
  static constexpr unsigned kPrefetch = kTiles < 4 ? 4 : 2;

  std::uint32_t c[kTiles][2][kTilePlanes] = {};

  /// A lane reads the words number lane % 4 of B, for all planes.
  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void add(B& block, const gpu::Quad& a, const Pair* chunk) {
    NESCIO_UNROLL
    for (unsigned tile = 0; tile < kTiles; ++tile) {
      NESCIO_UNROLL
      for (unsigned plane = 0; plane < kTilePlanes; ++plane) {
        const Pair b = chunk[tile * gpu::kWarp + 4 * plane + block.lane() % 4];
        NESCIO_UNROLL
        for (unsigned half = 0; half < 2; ++half) {
          c[tile][half][plane] +=
              B::count_ones(a.w[half] & b.w[0]) + B::count_ones(a.w[2 + half] & b.w[1]);
        }
      }
    }
  }

  template <class Function>
  NESCIO_DEVICE void transform(Function function) {
    NESCIO_UNROLL
    for (auto& tile : c) {
      NESCIO_UNROLL
      for (auto& half : tile) {
        NESCIO_UNROLL
        for (std::uint32_t& sum : half) sum = function(sum);
      }
    }
  }

  /// This lane's partial product of a row and a tile. `has_sign`: the highest plane of the tile is
  /// the sign.
  template <gpu::ThreadBlock B>
  NESCIO_DEVICE std::int64_t value(const B&, unsigned tile, unsigned half, bool has_sign) const {
    std::int64_t sum = 0;
    NESCIO_UNROLL
    for (unsigned plane = 0; plane < kTilePlanes; ++plane) {
      const std::int64_t ones = static_cast<std::int32_t>(c[tile][half][plane]);
      sum += (plane == kTilePlanes - 1 && has_sign ? -ones : ones) << plane;
    }
    return sum;
  }
};

/// Accumulators of tiles by matrix instructions, which give a lane two planes of each row.
template <unsigned kTiles>
struct MatrixSums {
  static constexpr unsigned kPrefetch = 4;

  std::uint32_t c[kTiles][4] = {};

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void add(B& block, const gpu::Quad& a, const Pair* chunk) {
    NESCIO_UNROLL
    for (unsigned tile = 0; tile < kTiles; ++tile) {
      const Pair b = chunk[tile * gpu::kWarp + block.lane()];
      block.multiply_bits(c[tile], a.w, b.w);
    }
  }

  template <class Function>
  NESCIO_DEVICE void transform(Function function) {
    NESCIO_UNROLL
    for (auto& tile : c) {
      NESCIO_UNROLL
      for (std::uint32_t& sum : tile) sum = function(sum);
    }
  }

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE std::int64_t value(const B& block, unsigned tile, unsigned half,
                                   bool has_sign) const {
    const unsigned t = block.lane() % 4;
    const std::int64_t low = static_cast<std::int32_t>(c[tile][2 * half]);
    const std::int64_t high = static_cast<std::int32_t>(c[tile][2 * half + 1]);
    return (low + 2 * (has_sign && t == 3 ? -high : high)) << (2 * t);
  }
};

template <gpu::ThreadBlock B>
NESCIO_DEVICE inline std::int64_t shuffle_xor_64(B& block, std::int64_t value, unsigned mask) {
  const auto bits = static_cast<std::uint64_t>(value);
  const std::uint64_t low = block.shuffle_xor(static_cast<std::uint32_t>(bits), mask);
  const std::uint64_t high = block.shuffle_xor(static_cast<std::uint32_t>(bits >> 32), mask);
  return static_cast<std::int64_t>(low | high << 32);
}

/// The product of weights and slices of kTiles tiles per chunk. With `kFused`, every block packs
/// the vectors of its slice in shared memory, while its first weights are being loaded, and two
/// teams of eight warps use them. Otherwise WriteVectors has packed them.
template <template <unsigned> class Sums, unsigned kTiles, bool kFused>
struct BitProduct {
  static constexpr unsigned kWarps = 8;  ///< per team
  static constexpr unsigned kTeams = kFused ? 2 : 1;
  static constexpr unsigned kThreads = kTeams * kWarps * gpu::kWarp;
  static constexpr bool kCooperative = true;
  static constexpr unsigned kMinBlocks = 2 / kTeams;
  static constexpr unsigned kPrefetch = Sums<kTiles>::kPrefetch;

  WeightTiles weights;
  VectorTiles vectors;
  FloatVectors from;    ///< used if fused
  const Pair* tiles;    ///< used if not fused
  const double* steps;  ///< used if not fused, for floats
  Products to;

  /// Shared memory: sums of the warps, then the largest magnitudes that they find, then tiles.
  static constexpr std::size_t kSums = std::size_t{kTeams} * kWarps * kTiles * kTileRows;
  static constexpr std::size_t kLargest = std::size_t{kTiles} * kTeams * kWarps;
  static std::size_t shared_bytes_for(std::uint64_t slice_pairs) {
    const std::size_t fused = kLargest * sizeof(std::uint32_t) + slice_pairs * sizeof(Pair);
    return kSums * sizeof(std::int64_t) + (kFused ? fused : 0);
  }
  std::size_t shared_bytes() const { return shared_bytes_for(vectors.slice_pairs()); }
  gpu::Grid grid() const {
    return {static_cast<std::uint32_t>(ceil_div(weights.row_tiles(), kTeams)), vectors.slices()};
  }

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const std::uint32_t rows = row_tile(block);
    const std::uint32_t tile_count = rows < weights.row_tiles() ? weights.tile_count() : 0;
    const gpu::Quad* quads = weights.tiles_of(rows) + block.lane();
    gpu::Quad prefetched[kPrefetch] = {};
    NESCIO_UNROLL
    for (unsigned i = 0; i < kPrefetch; ++i) {
      const std::uint32_t tile_index = warp(block) + i * kWarps;
      if (tile_index < tile_count) prefetched[i] = quads[std::uint64_t{tile_index} * gpu::kWarp];
    }
    const Pair* planes = slice_tiles(block);
    Sums<kTiles> sums;
    add_tiles(block, quads, tile_count, prefetched, planes, sums);
    if (weights.bits == 1) subtract_ones(block, planes, sums);
    store_sums(block, sums);
    block.sync();
    write_products(block);
  }

 private:
  /// The sixteen rows of this warp's team, and the index of the warp in the team.
  template <gpu::ThreadBlock B>
  NESCIO_DEVICE static std::uint32_t row_tile(const B& block) {
    return block.x() * kTeams + block.warp() / kWarps;
  }
  template <gpu::ThreadBlock B>
  NESCIO_DEVICE static std::uint32_t warp(const B& block) {
    return block.warp() % kWarps;
  }

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE static std::int64_t* shared_sums(const B& block) {
    return reinterpret_cast<std::int64_t*>(block.shared());
  }
  template <gpu::ThreadBlock B>
  NESCIO_DEVICE static std::int64_t* team_sums(const B& block) {
    return shared_sums(block) + block.warp() / kWarps * (kSums / kTeams);
  }
  template <gpu::ThreadBlock B>
  NESCIO_DEVICE static std::uint32_t* shared_largest(const B& block) {
    return reinterpret_cast<std::uint32_t*>(shared_sums(block) + kSums);
  }

  /// The number of vectors of this block's slice.
  template <gpu::ThreadBlock B>
  NESCIO_DEVICE std::uint32_t vectors_here(const B& block) const {
    const std::uint32_t all = vectors.slice_vectors(), left = vectors.batch - block.y() * all;
    return left < all ? left : all;
  }

  /// Returns the tiles of the slice. Tiles beyond the last vector have arbitrary content: they
  /// affect only sums that are not read.
  template <gpu::ThreadBlock B>
  NESCIO_DEVICE const Pair* slice_tiles(B& block) const {
    if constexpr (!kFused) {
      return tiles + block.y() * vectors.slice_pairs();
    } else {
      std::uint32_t* largest = shared_largest(block);
      std::uint32_t* words = largest + kLargest;
      const std::uint32_t here = vectors_here(block);
      const std::uint64_t first = std::uint64_t{block.y()} * vectors.slice_vectors();
      for (std::uint32_t v = 0; v < here; ++v) {
        const std::uint64_t element = (first + v) * vectors.columns;
        const std::uint32_t max = warp_largest<kThreads>(block, from, element, vectors.columns);
        if (block.lane() == 0) largest[v * kTeams * kWarps + block.warp()] = max;
      }
      block.sync();
      for (std::uint32_t v = 0; v < here; ++v) {
        const PlaneWriter<FloatVectors> writer = {
            from, quantizer_of(block, v), vectors, (first + v) * vectors.columns, v, words};
        writer.write(block, block.warp(), kTeams * kWarps);
      }
      block.sync();
      return reinterpret_cast<const Pair*>(words);
    }
  }

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE Quantizer quantizer_of(const B& block, std::uint32_t vector) const {
    constexpr unsigned kAll = kTeams * kWarps;
    const std::uint32_t* largest = shared_largest(block) + vector * kAll;
    return Quantizer::of(block_largest<kAll>(largest), vectors.bits);
  }

  /// Adds this warp's tiles of all planes.
  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void add_tiles(B& block, const gpu::Quad* quads, std::uint32_t tile_count,
                               gpu::Quad (&prefetched)[kPrefetch], const Pair* planes,
                               Sums<kTiles>& sums) const {
    const std::uint32_t chunks = weights.chunks();
    std::uint32_t plane = weights.bits - 1, chunk = warp(block);
    for (std::uint32_t begin = warp(block); begin < tile_count; begin += kPrefetch * kWarps) {
      NESCIO_UNROLL
      for (unsigned i = 0; i < kPrefetch; ++i) {
        const std::uint32_t tile_index = begin + i * kWarps;
        if (tile_index >= tile_count) break;
        const gpu::Quad a = prefetched[i];
        const std::uint32_t next = tile_index + kPrefetch * kWarps;
        if (next < tile_count) prefetched[i] = quads[std::uint64_t{next} * gpu::kWarp];
        for (; chunk >= chunks; chunk -= chunks) next_plane(sums, plane--);
        sums.add(block, a, planes + std::uint64_t{chunk} * kTiles * gpu::kWarp);
        chunk += kWarps;
      }
    }
    while (plane > 0) next_plane(sums, plane--);
  }

  /// Prepares the sums of a plane and those above it for the next lower plane.
  NESCIO_DEVICE void next_plane(Sums<kTiles>& sums, std::uint32_t plane) const {
    const std::uint32_t factor = plane + 1 == weights.bits ? ~std::uint32_t{1} : 2;  // -2, the sign
    sums.transform([factor](std::uint32_t sum) { return factor * sum; });
  }

  /// Doubles the sums and subtracts those of a plane of ones, over this warp's chunks.
  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void subtract_ones(B& block, const Pair* planes, Sums<kTiles>& sums) const {
    const gpu::Quad ones = {{~0u, ~0u, ~0u, ~0u}};
    sums.transform([](std::uint32_t sum) { return 0 - 2 * sum; });
    for (std::uint32_t chunk = warp(block); chunk < weights.chunks(); chunk += kWarps) {
      sums.add(block, ones, planes + std::uint64_t{chunk} * kTiles * gpu::kWarp);
    }
    sums.transform([](std::uint32_t sum) { return 0 - sum; });
  }

  /// Adds this warp's sums over the planes of each tile and writes them to shared memory, one per
  /// row.
  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void store_sums(B& block, const Sums<kTiles>& sums) const {
    NESCIO_UNROLL
    for (unsigned tile = 0; tile < kTiles; ++tile) {
      const bool has_sign = tile % vectors.tiles() == vectors.tiles() - 1;
      NESCIO_UNROLL
      for (unsigned half = 0; half < 2; ++half) {
        std::int64_t sum = sums.value(block, tile, half, has_sign);
        sum += shuffle_xor_64(block, sum, 1);
        sum += shuffle_xor_64(block, sum, 2);
        if (block.lane() % 4 != 0) continue;
        const unsigned row = 8 * half + block.lane() / 4;
        team_sums(block)[(warp(block) * kTiles + tile) * kTileRows + row] = sum;
      }
    }
  }

  /// Adds the sums over warps and tiles and writes the products, one per thread.
  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void write_products(B& block) const {
    const std::uint32_t thread = block.thread() % (kWarps * gpu::kWarp);  // in its team
    const std::uint32_t v = thread / kTileRows, row_here = thread % kTileRows;
    const std::uint32_t row = row_tile(block) * kTileRows + row_here;
    const std::int64_t* sums = team_sums(block) + row_here;
    if (v >= vectors_here(block) || row >= weights.rows) return;
    std::int64_t sum = 0;
    for (std::uint32_t i = 0; i < vectors.tiles(); ++i) {
      const std::uint32_t tile = v * vectors.tiles() + i;
      std::int64_t of_tile = 0;
      NESCIO_UNROLL
      for (unsigned w = 0; w < kWarps; ++w) of_tile += sums[(w * kTiles + tile) * kTileRows];
      sum += of_tile << (kTilePlanes * i);
    }
    const std::uint64_t vector = std::uint64_t{block.y()} * vectors.slice_vectors() + v;
    const std::uint64_t at = vector * weights.rows + row;
    if (to.integers != nullptr) {
      to.integers[at] = sum;
      return;
    }
    const double step = kFused ? quantizer_of(block, v).step() : steps[vector];
    const double scaled = static_cast<double>(sum) * static_cast<double>(to.scale[row]);
    const float product = static_cast<float>(scaled * step);
    to.floats[at] = to.bias == nullptr ? product : product + to.bias[row];
  }
};

}  // namespace nescio::bitserial
