#pragma once

// Activations on a GPU: from floats to integers of k bits with the bits of activations.h, and from
// integers to tiles of their planes (tiles_gpu.h).

#include <bit>
#include <cstddef>
#include <cstdint>

#include "bitserial/gpu/tiles_gpu.h"
#include "prg/word.h"

namespace nescio::bitserial {

NESCIO_INLINE std::uint32_t larger(std::uint32_t a, std::uint32_t b) { return a > b ? a : b; }

/// What makes integers of one vector's floats.
struct Quantizer {
  double top;         ///< 2^(k-1) - 1
  double largest;     ///< a: a float, and so of 24 bits
  double reciprocal;  ///< 1 / a, rounded; 0 for a vector of zeros

  NESCIO_DEVICE static Quantizer of(std::uint32_t largest_bits, std::uint32_t bits) {
    const double a = std::bit_cast<float>(largest_bits);
    return {static_cast<double>((std::int64_t{1} << (bits - 1)) - 1), a, a == 0 ? 0 : 1 / a};
  }

  /// The step, a / top, by which products are multiplied. A vector that is not finite has none, and
  /// its products are NaN.
  NESCIO_DEVICE double step() const {
    const bool finite = std::bit_cast<std::uint64_t>(largest) < 0x7FF0000000000000;
    return finite ? largest / top : std::bit_cast<double>(std::uint64_t{0x7FF8000000000000});
  }

  /// rint((x * top) / a), without a division. The guess is within two units in the last place of the
  /// quotient. What it leaves over is exact, for a has 24 bits; and the quotient of a double by 24
  /// bits is never so near to the middle of two doubles (2^-77 of it) that the error of what is added
  /// to the guess (2^-104) could tell, so that the sum is the rounded quotient. Adding 1.5 x 2^52
  /// rounds that to an integer, which then is the lower half of the sum.
  template <class B>
  NESCIO_DEVICE std::uint32_t quantize(float x) const {
    const double product = static_cast<double>(x) * top;
    const double guess = product * reciprocal;
    const double rest = B::multiply_add(-guess, largest, product);
    const double quotient = B::multiply_add(rest, reciprocal, guess);
    return static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(quotient + 0x1.8p52));
  }
};

/// Vectors of floats, one after the other.
struct FloatVectors {
  static constexpr bool kFloats = true;
  const float* x;

  /// As bits, which are ordered as magnitudes are; NaN and infinity come last.
  NESCIO_DEVICE std::uint32_t magnitude(std::uint64_t i) const {
    return std::bit_cast<std::uint32_t>(x[i]) & 0x7FFFFFFF;
  }
  template <class B>
  NESCIO_DEVICE std::uint32_t integer(const Quantizer& quantizer, std::uint64_t i) const {
    return quantizer.quantize<B>(x[i]);
  }
};

/// Vectors of integers, which k bits hold.
struct IntegerVectors {
  static constexpr bool kFloats = false;
  const std::int32_t* x;

  template <class B>
  NESCIO_DEVICE std::uint32_t integer(const Quantizer&, std::uint64_t i) const {
    return static_cast<std::uint32_t>(x[i]);
  }
};

/// The largest magnitude that this warp's threads have seen when the block's read a vector together:
/// all lanes get it. Loads are queued eight at a time; beyond the end the last element is read again.
template <unsigned kThreads, class B>
NESCIO_DEVICE inline std::uint32_t warp_largest(B& block, const FloatVectors& from,
                                                std::uint64_t first, std::uint32_t columns) {
  constexpr unsigned kLoads = 8;
  std::uint32_t most = 0;
  for (std::uint32_t j = block.thread(); j < columns; j += kLoads * kThreads) {
    NESCIO_UNROLL
    for (unsigned i = 0; i < kLoads; ++i) {
      const std::uint32_t column = j + i * kThreads;
      most = larger(most, from.magnitude(first + (column < columns ? column : columns - 1)));
    }
  }
  NESCIO_UNROLL
  for (unsigned mask = gpu::kWarp / 2; mask > 0; mask /= 2) {
    most = larger(most, block.shuffle_xor(most, mask));
  }
  return most;
}

/// The largest of what a block's warps have found.
template <unsigned kWarps>
NESCIO_DEVICE inline std::uint32_t block_largest(const std::uint32_t* of_warps) {
  std::uint32_t most = 0;
  NESCIO_UNROLL
  for (unsigned warp = 0; warp < kWarps; ++warp) most = larger(most, of_warps[warp]);
  return most;
}

/// Bit i of lane j's word becomes bit j of lane i's: halves of blocks of 2w lanes by 2w bits change
/// places, for w = 16 down to 1.
template <class B>
NESCIO_DEVICE inline std::uint32_t transpose_lanes(B& block, std::uint32_t word) {
  std::uint32_t low = 0x0000FFFF;
  NESCIO_UNROLL
  for (unsigned width = 16; width > 0; width /= 2) {
    const std::uint32_t other = block.shuffle_xor(word, width);
    const bool upper = (block.lane() & width) != 0;
    word =
        upper ? (word & ~low) | ((other & ~low) >> width) : (word & low) | (other & low) << width;
    low ^= low << (width / 2);
  }
  return word;
}

/// A warp's part in making tiles of a vector: `vector` of its slice, elements from `first` on.
template <class Source>
struct PlaneWriter {
  Source from;
  Quantizer quantizer;
  VectorTiles tiles;
  std::uint64_t first;
  std::uint32_t vector;
  std::uint32_t* to;

  /// What this warp does when `warps` share the vector.
  template <class B>
  NESCIO_DEVICE void write(B& block, std::uint32_t warp, std::uint32_t warps) const {
    if (tiles.bits == 8) return write_words<8>(block, warp, warps);
    if (tiles.bits == 16) return write_words<16>(block, warp, warps);
    write_words<32>(block, warp, warps);
  }

 private:
  /// A warp takes 32 columns of each of 32 / k words at a time: a lane holds a column of each, k bits a
  /// word, and the lanes' transpose is the words of all k planes, one a lane.
  template <unsigned kBits, class B>
  NESCIO_DEVICE void write_words(B& block, std::uint32_t warp, std::uint32_t warps) const {
    constexpr unsigned kTogether = 32 / kBits;
    constexpr std::uint32_t kMask = ~std::uint32_t{0} >> (32 - kBits);
    const std::uint32_t words = tiles.chunks() * kChunkWords, lane = block.lane();
    for (std::uint32_t word = warp * kTogether; word < words; word += warps * kTogether) {
      std::uint32_t packed = 0;
      NESCIO_UNROLL
      for (unsigned i = 0; i < kTogether; ++i) {
        const std::uint32_t column = (word + i) * 32 + lane;
        if (column >= tiles.columns) continue;
        const std::uint32_t value = from.template integer<B>(quantizer, first + column);
        packed |= (value & kMask) << (i * kBits);
      }
      packed = transpose_lanes(block, packed);
      to[tiles.place(vector, lane % kBits, word + lane / kBits)] = packed;
    }
  }
};

/// Makes tiles of vectors, and their steps, for a product that comes after: `blocks` blocks a vector,
/// each of which looks for the largest magnitude by itself.
template <class Source>
struct WriteVectors {
  static constexpr unsigned kWarps = 8;
  static constexpr unsigned kThreads = kWarps * gpu::kWarp;
  static constexpr bool kTogether = true;

  Source from;
  VectorTiles tiles;
  std::uint32_t blocks;
  std::uint32_t* words;
  double* steps;  ///< of floats

  std::size_t shared_bytes() const { return kWarps * sizeof(std::uint32_t); }
  gpu::Grid grid() const { return {blocks, tiles.batch}; }

  template <class B>
  NESCIO_DEVICE void operator()(B& block) const {
    const std::uint64_t first = std::uint64_t{block.y()} * tiles.columns;
    Quantizer quantizer{};
    if constexpr (Source::kFloats) {
      auto* of_warps = reinterpret_cast<std::uint32_t*>(block.shared());
      const std::uint32_t most = warp_largest<kThreads>(block, from, first, tiles.columns);
      if (block.lane() == 0) of_warps[block.warp()] = most;
      block.sync();
      quantizer = Quantizer::of(block_largest<kWarps>(of_warps), tiles.bits);
      if (block.x() == 0 && block.thread() == 0) steps[block.y()] = quantizer.step();
    }
    const std::uint32_t vectors = tiles.slice_vectors();
    const PlaneWriter<Source> writer = {
        from,  quantizer,           tiles,
        first, block.y() % vectors, words + block.y() / vectors * tiles.slice_pairs() * 2};
    writer.write(block, block.x() * kWarps + block.warp(), blocks * kWarps);
  }
};

}  // namespace nescio::bitserial
