#pragma once

// Activations on a GPU: quantization of floats to integers of k bits, with the same results as
// activations.h, and packing of integers into tiles of bit planes (tiles_gpu.h).

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/word.h"
#include "bitserial/gpu/tiles_gpu.h"

namespace nescio::bitserial {

NESCIO_INLINE std::uint32_t larger(std::uint32_t a, std::uint32_t b) { return a > b ? a : b; }

/// Quantizes the floats of one vector.
struct Quantizer {
  double q_max;       ///< 2^(k-1) - 1
  double largest;     ///< a, the value of a float, with 24 significant bits
  double reciprocal;  ///< 1 / a, rounded; 0 for a vector of zeros

  NESCIO_DEVICE static Quantizer of(std::uint32_t largest_bits, std::uint32_t bits) {
    const double a = std::bit_cast<float>(largest_bits);
    return {static_cast<double>((std::int64_t{1} << (bits - 1)) - 1), a, a == 0 ? 0 : 1 / a};
  }

  /// The step, a / q_max, by which products are multiplied. It is NaN for a vector with an element
  /// that is not finite, and so are its products.
  NESCIO_DEVICE double step() const {
    const bool finite = std::bit_cast<std::uint64_t>(largest) < 0x7FF0000000000000;
    return finite ? largest / q_max : std::bit_cast<double>(std::uint64_t{0x7FF8000000000000});
  }

  /// rint((x * q_max) / a), without a division. The guess is within two units in the last place of
  /// the quotient. The remainder is exact, because a has 24 significant bits. The quotient of a
  /// double by a 24-bit number differs from the midpoint of two doubles by at least 2^-77 of its
  /// value; the error of the correction is at most 2^-104 of it, so that the sum is the correctly
  /// rounded quotient. Adding 1.5 x 2^52 rounds that to an integer, which is the lower half of the
  /// result.
  template <gpu::ThreadBlock B>
  NESCIO_DEVICE std::uint32_t quantize(float x) const {
    const double product = static_cast<double>(x) * q_max;
    const double guess = product * reciprocal;
    const double rest = B::multiply_add(-guess, largest, product);
    const double quotient = B::multiply_add(rest, reciprocal, guess);
    return static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(quotient + 0x1.8p52));
  }
};

/// Contiguous vectors of floats.
struct FloatVectors {
  static constexpr bool kFloats = true;
  const float* x;

  /// The bits of the magnitude. Their order is that of the magnitudes, with infinity and NaN last.
  NESCIO_DEVICE std::uint32_t magnitude(std::uint64_t i) const {
    return std::bit_cast<std::uint32_t>(x[i]) & 0x7FFFFFFF;
  }
  template <gpu::ThreadBlock B>
  NESCIO_DEVICE std::uint32_t integer(const Quantizer& quantizer, std::uint64_t i) const {
    return quantizer.quantize<B>(x[i]);
  }
};

/// Contiguous vectors of integers that fit in k bits.
struct IntegerVectors {
  static constexpr bool kFloats = false;
  const std::int32_t* x;

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE std::uint32_t integer(const Quantizer&, std::uint64_t i) const {
    return static_cast<std::uint32_t>(x[i]);
  }
};

/// The threads of a block read a vector together; returns the largest magnitude that the calling
/// warp read, in all lanes. Eight loads are in flight at a time; beyond the end the last element is
/// read again.
template <unsigned kThreads, class B>
NESCIO_DEVICE inline std::uint32_t warp_largest(B& block, const FloatVectors& from,
                                                std::uint64_t first, std::uint32_t columns) {
  constexpr unsigned kLoads = 8;
  std::uint32_t max = 0;
  for (std::uint32_t j = block.thread(); j < columns; j += kLoads * kThreads) {
    NESCIO_UNROLL
    for (unsigned i = 0; i < kLoads; ++i) {
      const std::uint32_t column = j + i * kThreads;
      max = larger(max, from.magnitude(first + (column < columns ? column : columns - 1)));
    }
  }
  NESCIO_UNROLL
  for (unsigned mask = gpu::kWarp / 2; mask > 0; mask /= 2) {
    max = larger(max, block.shuffle_xor(max, mask));
  }
  return max;
}

/// The maximum of the results of a block's warps.
template <unsigned kWarps>
NESCIO_DEVICE inline std::uint32_t block_largest(const std::uint32_t* warp_maxima) {
  std::uint32_t max = 0;
  NESCIO_UNROLL
  for (unsigned warp = 0; warp < kWarps; ++warp) max = larger(max, warp_maxima[warp]);
  return max;
}

/// Transposes the 32 x 32 bits of a warp's words: bit i of lane j's word becomes bit j of lane i's.
/// For w = 16 down to 1, the off-diagonal quarters of blocks of 2w lanes by 2w bits are exchanged.
template <gpu::ThreadBlock B>
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

/// Packs a vector into tiles, by one or several warps: vector `vector` of its slice, whose elements
/// start at `first`.
template <class Source>
struct PlaneWriter {
  Source from;
  Quantizer quantizer;
  VectorTiles tiles;
  std::uint64_t first;
  std::uint32_t vector;
  std::uint32_t* to;

  /// Packs the share of warp number `warp` of `warps`.
  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void write(B& block, std::uint32_t warp, std::uint32_t warps) const {
    if (tiles.bits == 8) return write_words<8>(block, warp, warps);
    if (tiles.bits == 16) return write_words<16>(block, warp, warps);
    write_words<32>(block, warp, warps);
  }

 private:
  /// A warp packs 32 columns of each of 32 / k words at a time. Each lane holds one column of each,
  /// k bits per word. After the transposition over the lanes, each lane holds one word of one of
  /// the k planes.
  template <unsigned kBits, class B>
  NESCIO_DEVICE void write_words(B& block, std::uint32_t warp, std::uint32_t warps) const {
    constexpr unsigned kWordsPerPass = 32 / kBits;
    constexpr std::uint32_t kMask = ~std::uint32_t{0} >> (32 - kBits);
    const std::uint32_t words = tiles.chunks() * kChunkWords, lane = block.lane();
    for (std::uint32_t word = warp * kWordsPerPass; word < words; word += warps * kWordsPerPass) {
      std::uint32_t packed = 0;
      NESCIO_UNROLL
      for (unsigned i = 0; i < kWordsPerPass; ++i) {
        const std::uint32_t column = (word + i) * 32 + lane;
        if (column >= tiles.columns) continue;
        const std::uint32_t value = from.template integer<B>(quantizer, first + column);
        packed |= (value & kMask) << (i * kBits);
      }
      packed = transpose_lanes(block, packed);
      to[tiles.word_index(vector, lane % kBits, word + lane / kBits)] = packed;
    }
  }
};

/// Packs vectors into tiles, and computes their steps, for a product that follows. Each vector is
/// packed by `blocks` blocks of threads, which all compute its largest magnitude.
template <class Source>
struct WriteVectors {
  static constexpr unsigned kWarps = 8;
  static constexpr unsigned kThreads = kWarps * gpu::kWarp;
  static constexpr bool kCooperative = true;

  Source from;
  VectorTiles tiles;
  std::uint32_t blocks;
  std::uint32_t* words;
  double* steps;  ///< for floats only

  std::size_t shared_bytes() const { return kWarps * sizeof(std::uint32_t); }
  gpu::Grid grid() const { return {blocks, tiles.batch}; }

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const std::uint64_t first = std::uint64_t{block.y()} * tiles.columns;
    Quantizer quantizer{};
    if constexpr (Source::kFloats) {
      auto* warp_maxima = reinterpret_cast<std::uint32_t*>(block.shared());
      const std::uint32_t max = warp_largest<kThreads>(block, from, first, tiles.columns);
      if (block.lane() == 0) warp_maxima[block.warp()] = max;
      block.sync();
      quantizer = Quantizer::of(block_largest<kWarps>(warp_maxima), tiles.bits);
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
