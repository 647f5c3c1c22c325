#include "bitserial/planes.h"

#include <bit>
#include <string>

#include "base/bits.h"
#include "base/error.h"

namespace nescio::bitserial {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& found,
                         const std::string& expected) {
  throw Error(ErrorKind::argument, what + ": found " + found + ", expected " + expected);
}

void check_shape(const Planes& planes, std::size_t row_words) {
  if (planes.bits < 1 || planes.bits > kMaxBits) {
    refuse("planes", std::to_string(planes.bits), "1 to 8, one for each bit of the weights");
  }
  if (planes.rows == 0) refuse("rows of planes", "0", "at least 1");
  if (planes.columns == 0 || planes.columns > kMaxColumns) {
    refuse("columns", std::to_string(planes.columns), "1 to " + std::to_string(kMaxColumns));
  }
  if (row_words != planes.row_words()) {
    refuse(
        "words of a row", std::to_string(row_words),
        std::to_string(planes.row_words()) + " for " + std::to_string(planes.columns) + " columns");
  }
}

}  // namespace

void check_planes(const Planes& planes, std::size_t row_words) {
  check_shape(planes, row_words);
  const std::size_t used = planes.columns % 64;
  if (used == 0) return;
  for (unsigned plane = 0; plane < planes.bits; ++plane) {
    for (std::size_t i = 0; i < planes.rows; ++i) {
      const std::uint64_t beyond = planes.row(plane, i)[row_words - 1] >> used;
      if (beyond == 0) continue;
      refuse("planes",
             "a one in plane " + std::to_string(plane) + ", row " + std::to_string(i) +
                 ", column " + std::to_string(planes.columns + std::countr_zero(beyond)),
             "zeros beyond the " + std::to_string(planes.columns) + " columns");
    }
  }
}

void read_codes(const Planes& planes, std::size_t row, std::uint8_t* codes) {
  for (std::size_t w = 0; w < planes.row_words(); ++w, codes += 64) {
    const std::size_t left = planes.columns - 64 * w;
    const std::uint64_t used = left < 64 ? (std::uint64_t{1} << left) - 1 : ~std::uint64_t{0};
    std::uint64_t words[kMaxBits] = {};
    for (unsigned i = 0; i < planes.bits; ++i) words[i] = planes.row(i, row)[w];
    if (planes.bits > 1) words[planes.bits - 1] ^= used;
    for (unsigned byte = 0; byte < 8; ++byte) {
      std::uint64_t tile = 0;
      for (unsigned i = 0; i < planes.bits; ++i) {
        tile |= ((words[i] >> (8 * byte)) & 0xFF) << (8 * i);
      }
      tile = transpose_bits(tile);
      for (unsigned j = 0; j < 8; ++j) {
        codes[8 * byte + j] = static_cast<std::uint8_t>(tile >> (8 * j));
      }
    }
  }
}

}  // namespace nescio::bitserial
