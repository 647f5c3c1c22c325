#pragma once

// The layout of weights for kernels whose lanes are rows. The code u of a weight (planes.h) is cut
// into parts of w = 8, 4, 2 or 1 bits, and each part stands in a stream of its own:
//
//   block       64 rows, the last one fewer; in a block, part after part
//   part        chunks of 32 / w columns, then the sum of each row's part as 32 bits
//   chunk       16 rows to a register of 64 bytes, up to 4 registers
//   register    32 bits of each row: byte g has in its bits w f to w f + w - 1, field f, the part of
//               column 4 f + g of the chunk
//
// So a mask makes of a register the bytes 2^(w f) u of 4 columns of each row, in the order that
// instructions want that multiply bytes and add four products to a lane (VPDPBUSD).

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/buffer.h"
#include "bitserial/planes.h"

namespace nescio::bitserial {

inline constexpr std::size_t kRegisterBytes = 64, kRegisterRows = 16, kBlockRegisters = 4;
inline constexpr std::size_t kBlockRows = kRegisterRows * kBlockRegisters;

/// Columns after which sums of 32 bits go over to 64: 255 * 128 * kSliceColumns < 2^31.
inline constexpr std::size_t kSliceColumns = std::size_t{1} << 16;

/// Bits `shift` to `shift + width - 1` of the codes; a lane's sum of such parts counts 2^worth-fold.
struct Part {
  unsigned width;
  unsigned shift;
  unsigned worth;
};

/// The parts of codes of so many bits, none wider than `widest` (4 or 8).
struct Parts {
  unsigned count = 0;
  Part parts[3] = {};

  const Part* begin() const { return parts; }
  const Part* end() const { return parts + count; }
};
Parts parts_of(unsigned bits, unsigned widest);

/// What is subtracted from a product of codes, times the sum of the activations.
inline constexpr std::int64_t code_offset(unsigned bits) {
  return bits == 1 ? 1 : std::int64_t{1} << (bits - 1);
}

inline constexpr std::size_t chunk_columns(unsigned width) { return 32 / width; }
inline constexpr std::size_t chunks_of(std::size_t columns, unsigned width) {
  return (columns + chunk_columns(width) - 1) / chunk_columns(width);
}

/// Registers, each of 16 rows, of `rows` rows.
inline constexpr std::size_t registers_of(std::size_t rows) {
  return (rows + kRegisterRows - 1) / kRegisterRows;
}

/// Bytes of a part of one register's rows.
inline constexpr std::size_t part_bytes(std::size_t columns, unsigned width) {
  return (chunks_of(columns, width) + 1) * kRegisterBytes;
}

std::size_t packed_fields_bytes(const Planes& planes, const Parts& parts);
void pack_fields(const Planes& planes, const Parts& parts, std::uint8_t* packed);

}  // namespace nescio::bitserial
