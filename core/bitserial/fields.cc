#include "bitserial/fields.h"

#include <algorithm>
#include <cstring>

namespace nescio::bitserial {
namespace {

/// Bytes of all parts of the rows of one register.
std::size_t register_bytes(std::size_t columns, const Parts& parts) {
  std::size_t bytes = 0;
  for (const Part& part : parts) bytes += part_bytes(columns, part.width);
  return bytes;
}

/// Packs a part of one row into its lane, then the sum.
void pack_part(const std::uint8_t* codes, std::size_t columns, const Part& part, std::size_t stride,
               std::uint8_t* lane) {
  const std::int32_t sum = pack_lane(codes, columns, part, stride, lane);
  std::memcpy(lane + chunks_of(columns, part.width) * stride, &sum, sizeof(sum));
}

}  // namespace

Parts parts_of(unsigned bits, unsigned max_width) {
  Parts parts;
  unsigned left = bits;
  for (unsigned width = max_width; width > 0; width /= 2) {
    for (; left >= width; left -= width) {
      const unsigned shift = left - width, exponent = bits == 1 ? 1 : shift;
      parts.parts[parts.count++] = {width, shift, exponent};
    }
  }
  return parts;
}

std::int32_t pack_lane(const std::uint8_t* codes, std::size_t columns, const Part& part,
                       std::size_t stride, std::uint8_t* lane) {
  const unsigned width = part.width, fields = 8 / width, mask = (1u << width) - 1;
  std::int32_t sum = 0;
  for (std::size_t c = 0; c < chunks_of(columns, width); ++c, lane += stride) {
    for (unsigned g = 0; g < 4; ++g) {
      unsigned byte = 0;
      for (unsigned f = 0; f < fields; ++f) {
        const unsigned value = (codes[4 * f + g] >> part.shift) & mask;
        sum += static_cast<std::int32_t>(value);
        byte |= value << (width * f);
      }
      lane[g] = static_cast<std::uint8_t>(byte);
    }
    codes += chunk_columns(width);
  }
  return sum;
}

std::size_t packed_fields_bytes(const Planes& planes, const Parts& parts) {
  return checked_product(registers_of(planes.rows), register_bytes(planes.columns, parts));
}

void pack_fields(const Planes& planes, const Parts& parts, std::uint8_t* packed) {
  std::memset(packed, 0, packed_fields_bytes(planes, parts));
  const std::size_t columns = planes.columns, bytes = register_bytes(columns, parts);
  Buffer<std::uint8_t> codes(64 * planes.row_words());
  for (std::size_t row = 0; row < planes.rows; ++row) {
    read_codes(planes, row, codes.data());
    const std::size_t block = row / kBlockRows, in_block = row % kBlockRows;
    const std::size_t registers =
        std::min(registers_of(planes.rows) - block * kBlockRegisters, kBlockRegisters);
    std::uint8_t* lane = packed + block * kBlockRegisters * bytes +
                         in_block / kRegisterRows * kRegisterBytes + in_block % kRegisterRows * 4;
    for (const Part& part : parts) {
      pack_part(codes.data(), columns, part, registers * kRegisterBytes, lane);
      lane += registers * part_bytes(columns, part.width);
    }
  }
}

}  // namespace nescio::bitserial
