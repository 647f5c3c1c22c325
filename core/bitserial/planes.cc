#include "bitserial/planes.h"

#include <bit>
#include <string>

#include "base/error.h"

namespace nescio::bitserial {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& found,
                         const std::string& expected) {
  throw Error(ErrorKind::argument, what + ": found " + found + ", expected " + expected);
}

void check_shape(const Planes& planes, std::size_t row_words) {
  if (planes.bits < 1 || planes.bits > kMostBits) {
    refuse("planes", std::to_string(planes.bits), "1 to 8, one for each bit of the weights");
  }
  if (planes.rows == 0) refuse("rows of planes", "0", "at least 1");
  if (planes.columns == 0 || planes.columns > kMostColumns) {
    refuse("columns", std::to_string(planes.columns), "1 to " + std::to_string(kMostColumns));
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

Buffer<std::int32_t> code_sums(const Planes& planes) {
  Buffer<std::int32_t> sums(planes.rows);
  for (std::size_t i = 0; i < planes.rows; ++i) {
    std::int64_t sum = 0;
    for (unsigned plane = 0; plane < planes.bits; ++plane) {
      std::int64_t ones = 0;
      const std::uint64_t* row = planes.row(plane, i);
      for (std::size_t w = 0; w < planes.row_words(); ++w) ones += std::popcount(row[w]);
      const bool turned = plane > 0 && plane == planes.bits - 1;
      if (turned) ones = static_cast<std::int64_t>(planes.columns) - ones;
      sum += ones << plane;
    }
    sums[i] = static_cast<std::int32_t>(sum);  // at most 255 * kMostColumns
  }
  return sums;
}

}  // namespace nescio::bitserial
