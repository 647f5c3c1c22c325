#pragma once

// Weights as bit planes (PrecisionBatching: thesis of M. Lam, chapter 3): an m x n matrix of
// integers q of b = 1 to 8 bits is stored as b bit matrices P_0 (the lowest) to P_{b-1},
//
//   b >= 2   q = -2^(b-1) P_{b-1} + sum of 2^i P_i, i < b-1        two's complement
//   b == 1   q = 2 P_0 - 1                                         never zero
//
// The code u of a weight is unsigned: u = q + 2^(b-1) for b >= 2, u = P_0 for b == 1. For b >= 2,
// the planes of u are those of q with the highest one inverted.

#include <cstddef>
#include <cstdint>

namespace nescio::bitserial {

inline constexpr unsigned kMaxBits = 8;
inline constexpr std::size_t kMaxColumns = std::size_t{1} << 22;

/// Planes in the layout of a caller: words [plane][row][column / 64]; bit j % 64 of a word is
/// column j.
struct Planes {
  const std::uint64_t* words;
  std::size_t rows;
  std::size_t columns;
  unsigned bits;

  std::size_t row_words() const { return (columns + 63) / 64; }
  const std::uint64_t* row(unsigned plane, std::size_t i) const {
    return words + (plane * rows + i) * row_words();
  }
};

/// Throws Error(argument) unless there are 1 to 8 planes of 1 to kMaxColumns columns and at least
/// one row, `row_words` is the number of words per row, and all bits beyond the columns are zero.
void check_planes(const Planes& planes, std::size_t row_words);

/// Writes the codes u of 64 * row_words() columns of one row, with zeros beyond the last column.
void read_codes(const Planes& planes, std::size_t row, std::uint8_t* codes);

}  // namespace nescio::bitserial
