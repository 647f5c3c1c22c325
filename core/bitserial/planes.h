#pragma once

// Weights as planes of bits (PrecisionBatching: thesis of M. Lam, chapter 3): integers q of b = 1 to
// 8 bits, m rows of n columns, as b matrices of bits P_0 (the lowest) to P_{b-1},
//
//   b >= 2   q = -2^(b-1) P_{b-1} + sum of 2^i P_i, i < b-1        two's complement
//   b == 1   q = 2 P_0 - 1                                         no zero
//
// or, with code u = q + 2^(b-1), or P_0 for one bit: unsigned, whose planes are those of q with the
// highest one's bits turned over.

#include <cstddef>
#include <cstdint>

namespace nescio::bitserial {

inline constexpr unsigned kMostBits = 8;
inline constexpr std::size_t kMostColumns = std::size_t{1} << 22;

/// Planes as a caller has them: words (plane, row, column / 64); bit j % 64 of a word is column j.
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

/// Throws Error(argument) unless there are 1 to 8 planes of 1 to kMostColumns columns and at least
/// one row, `row_words` words a row, and bits beyond the columns are zero.
void check_planes(const Planes& planes, std::size_t row_words);

/// The codes u of 64 * row_words() columns of one row: zeros beyond the columns.
void read_codes(const Planes& planes, std::size_t row, std::uint8_t* codes);

}  // namespace nescio::bitserial
