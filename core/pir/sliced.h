#pragma once

// The sliced layout of a table, for outputs of one bit. The table is divided into tiles of 512 rows, the
// range of one leaf of a key, and a tile into blocks of 64 bit columns. A block is 4 KB: 64 lines of 64
// bytes. Line r has one byte per bit column, whose bit i is that column's bit in row 8r + i of the
// tile.
//
//     bit column c of a row is bit c % 8 of its byte c / 8
//     block (tile, c / 64) begins at byte 4096 * (tile * blocks + c / 64); within it
//     row 512 tile + 8r + i, column c  is  bit i of byte 64 r + c % 64
//
// Eight shares of eight keys are an 8 x 8 matrix over GF(2), which is multiplied with every byte of a
// line at once, and a block is read sequentially. Rows are padded with zeros to whole blocks. The
// blocks of the last tile have only the lines that its rows need, rounded up to an even number, and
// padded with zeros.

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "base/bits.h"
#include "base/block.h"

namespace nescio::pir {

inline constexpr std::size_t kTileRows = 512;
inline constexpr std::size_t kGroupRows = 8;         // rows per line
inline constexpr std::size_t kBlockColumnBytes = 8;  // bytes of a row per block
inline constexpr std::size_t kLines = 64;            // lines per block; even
inline constexpr std::size_t kLineBytes = 64;
inline constexpr std::size_t kBlockBytes = kLines * kLineBytes;

/// Returns the blocks of a tile with rows of `row_bytes` bytes.
NESCIO_INLINE std::size_t block_count(std::size_t row_bytes) {
  return row_bytes / kBlockColumnBytes + (row_bytes % kBlockColumnBytes != 0);
}

/// A tile in memory.
struct Tile {
  const std::uint8_t* data;
  std::size_t blocks;
  std::size_t lines;  ///< lines of each block; even

  const std::uint8_t* block(std::size_t i) const { return data + i * lines * kLineBytes; }
};

/// Transposes 8 x 8 bytes: byte j of word i becomes byte i of word j.
NESCIO_INLINE void transpose_bytes(std::uint64_t* w) {
  const auto exchange = [w](std::size_t i, std::size_t j, unsigned shift, std::uint64_t mask) {
    const std::uint64_t t = ((w[i] >> shift) ^ w[j]) & mask;
    w[j] ^= t;
    w[i] ^= t << shift;
  };
  for (std::size_t i : {0u, 1u, 2u, 3u}) exchange(i, i + 4, 32, 0x00000000FFFFFFFFull);
  for (std::size_t i : {0u, 1u, 4u, 5u}) exchange(i, i + 2, 16, 0x0000FFFF0000FFFFull);
  for (std::size_t i : {0u, 2u, 4u, 6u}) exchange(i, i + 1, 8, 0x00FF00FF00FF00FFull);
}

/// Convert eight words, each with eight bytes of a row, to a line, and back.
NESCIO_INLINE void slice_words(std::uint64_t* words) {
  transpose_bytes(words);
  for (std::size_t i = 0; i < 8; ++i) words[i] = transpose_bits(words[i]);
}
NESCIO_INLINE void unslice_words(std::uint64_t* words) {
  for (std::size_t i = 0; i < 8; ++i) words[i] = transpose_bits(words[i]);
  transpose_bytes(words);
}

/// Packs the lowest bits of eight bytes into one byte, the first byte's lowest.
NESCIO_INLINE std::uint8_t pack_bits(std::uint64_t bytes) {
  return static_cast<std::uint8_t>(((bytes & 0x0101010101010101ull) * 0x0102040810204080ull) >> 56);
}

}  // namespace nescio::pir
