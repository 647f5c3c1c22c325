#pragma once

// Products of parts of 1 and 2 bits by table lookup. Half a byte of a row, that is 4 / w columns,
// has 16 possible values, and so has its product with the activations. A table of 64 bytes holds
// one byte of the sixteen products for each of the four half bytes of a lane; there is one table
// per byte of a product. VPERMB looks up 64 bytes, and VPDPBUSD adds those of each row to its lane.
// A bias makes products nonnegative.

#include <cstddef>
#include <cstdint>

#include "bitserial/lanes_avx512_impl.h"

namespace nescio::bitserial::avx512 {

/// Bytes of the tables of one vector.
std::size_t tables_bytes(std::size_t columns, unsigned width, unsigned activation_bits);

/// Builds the tables of one vector.
void make_tables(const std::int32_t* x, std::size_t columns, unsigned width,
                 unsigned activation_bits, std::uint8_t* tables);

/// Adds the products of one part of a block and `vectors` vectors, whose tables are `stride` bytes
/// apart.
void add_lookups(const PackedPart& packed, const std::uint8_t* tables, std::size_t stride,
                 std::size_t vectors, unsigned activation_bits, Totals& totals);

}  // namespace nescio::bitserial::avx512
