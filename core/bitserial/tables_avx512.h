#pragma once

// Products of parts of 1 and 2 bits by tables. Half a byte of a row, that is 4 / w columns, has 16
// values, and so has its product with the activations. For the four columns, or pairs of them, that
// a lane's bytes hold at once the sixteen products stand in tables of 64 bytes, a table for each
// byte of the products: VPERMB looks 64 bytes up, and VPDPBUSD adds those of each row to its lane.
// Products are made positive by adding a constant.

#include <cstddef>
#include <cstdint>

#include "bitserial/lanes_avx512_impl.h"

namespace nescio::bitserial::avx512 {

/// Bytes of the tables for one vector.
std::size_t tables_bytes(std::size_t columns, unsigned width, unsigned activation_bits);

/// Makes one vector's tables.
void make_tables(const std::int32_t* x, std::size_t columns, unsigned width,
                 unsigned activation_bits, std::uint8_t* tables);

/// Adds the products of a block's part with some vectors, whose tables are `stride` bytes apart.
void add_lookups(const Stream& stream, const std::uint8_t* tables, std::size_t stride,
                 std::size_t vectors, unsigned activation_bits, Totals& totals);

}  // namespace nescio::bitserial::avx512
