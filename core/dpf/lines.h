#pragma once

// Lines: the layout of shares and tables in a GPU's memory. A line is 64 bytes that belong to
// consecutive rows of a table:
//
//     bit output     the shares, or one bit column, of 512 rows, lowest bit first
//     word outputs   one byte of the shares, or one byte column, of 64 rows
//
// so that the product of a line of shares with a line of a table is the population count of their AND,
// or a sum of products of their bytes, as matrix instructions compute it. Shares of w bytes have w
// lines, called planes, one for each byte, lowest first. A table of a word output is stored by byte
// columns. The product of plane i with byte column j has the weight 2^(8 (i + j mod w)), or 0 if
// i + j >= w (mod 2^(8 w)); pir/gpu/product_gpu.h adds them up.
//
//     shares of key k, plane i, chunk c (of 512 or 64 rows)   line (c * keys + k) * planes + i
//     column j of a table with `columns` columns              line c * columns + j

#include <cstddef>
#include <cstdint>

#include "base/block.h"
#include "dpf/output.h"

namespace nescio::dpf {

inline constexpr std::uint32_t kLineWords = 16;

struct LineShape {
  std::uint32_t element_bytes = 0;  ///< of a share; 0 for bits

  LineShape() = default;
  explicit LineShape(Output output)
      : element_bytes(output == Output::bit ? 0 : element_bits(output) / 8) {}

  NESCIO_INLINE bool bits() const { return element_bytes == 0; }
  NESCIO_INLINE std::uint32_t planes() const { return bits() ? 1 : element_bytes; }
  NESCIO_INLINE std::uint32_t rows() const { return bits() ? 512 : 64; }  ///< of a line
  NESCIO_INLINE std::uint32_t leaves() const { return planes(); }         ///< of a chunk
};

}  // namespace nescio::dpf
