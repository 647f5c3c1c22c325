#pragma once

// The layout of weights for kernels in which a lane is a row. The code u of a weight (planes.h) is
// divided into parts of w = 8, 4, 2 or 1 bits, and each part is stored separately:
//
//   block       up to 64 rows; within a block, part after part
//   part        chunks of 32 / w columns, then the sum of each row's part as 32 bits
//   chunk       1 to 4 registers of 64 bytes, for 16 rows each
//   register    32 bits of each row: bits w f to w f + w - 1 of byte g, field f, hold the part of
//               column 4 f + g of the chunk
//
// A mask turns a register into the bytes 2^(w f) u of 4 columns of each row, in the order that
// instructions expect that multiply bytes and add four products to a lane (VPDPBUSD).

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/buffer.h"
#include "bitserial/planes.h"

namespace nescio::bitserial {

inline constexpr std::size_t kRegisterBytes = 64, kRegisterRows = 16, kBlockRegisters = 4;
inline constexpr std::size_t kBlockRows = kRegisterRows * kBlockRegisters;

/// Columns that 32-bit sums can hold before they are added to 64-bit sums:
/// 255 * 128 * kSliceColumns < 2^31.
inline constexpr std::size_t kSliceColumns = std::size_t{1} << 16;

/// Bits `shift` to `shift + width - 1` of the codes. A sum of such parts is multiplied by
/// 2^exponent.
struct Part {
  unsigned width;
  unsigned shift;
  unsigned exponent;
};

/// The parts of codes of `bits` bits, none wider than `max_width` (4 or 8).
struct Parts {
  unsigned count = 0;
  Part parts[3] = {};

  const Part* begin() const { return parts; }
  const Part* end() const { return parts + count; }
};
Parts parts_of(unsigned bits, unsigned max_width);

/// The difference of codes and weights: a product of codes exceeds the product of weights by this
/// times the sum of the activations.
inline constexpr std::int64_t code_offset(unsigned bits) {
  return bits == 1 ? 1 : std::int64_t{1} << (bits - 1);
}

inline constexpr std::size_t chunk_columns(unsigned width) { return 32 / width; }
inline constexpr std::size_t chunks_of(std::size_t columns, unsigned width) {
  return (columns + chunk_columns(width) - 1) / chunk_columns(width);
}

/// Registers of `rows` rows, 16 rows per register.
inline constexpr std::size_t registers_of(std::size_t rows) {
  return (rows + kRegisterRows - 1) / kRegisterRows;
}

/// Bytes of a part of the rows of one register.
inline constexpr std::size_t part_bytes(std::size_t columns, unsigned width) {
  return (chunks_of(columns, width) + 1) * kRegisterBytes;
}

/// Packs a part of the codes of one row into its lane: 4 bytes at every multiple of `stride`, for
/// all columns of their chunks. Returns the sum of the parts.
std::int32_t pack_lane(const std::uint8_t* codes, std::size_t columns, const Part& part,
                       std::size_t stride, std::uint8_t* lane);

std::size_t packed_fields_bytes(const Planes& planes, const Parts& parts);
void pack_fields(const Planes& planes, const Parts& parts, std::uint8_t* packed);

}  // namespace nescio::bitserial
