#pragma once

// A table as lines in a GPU's memory (see dpf/lines.h), and the kernels that store rows.

#include <cstddef>
#include <cstdint>

#include "base/bits.h"
#include "dpf/lines.h"
#include "gpu/thread_block.h"

namespace nescio::pir {

/// The lines of rows: `columns` per chunk, one for each bit of a row, or each byte of its words. The lines
/// of several bins with as many rows each follow each other.
struct LineTable {
  std::uint32_t* lines;
  dpf::LineShape shape;
  std::uint64_t rows;  ///< of a bin
  std::uint32_t row_bytes;
  std::uint32_t columns;

  static std::uint64_t columns_for(dpf::LineShape shape, std::uint64_t row_bytes) {
    return shape.bits() ? 8 * row_bytes
                        : ceil_div(row_bytes, shape.element_bytes) * shape.element_bytes;
  }
  NESCIO_INLINE std::uint64_t chunks() const { return ceil_div(rows, shape.rows()); }  ///< of a bin
  NESCIO_INLINE std::uint32_t* line(std::uint64_t chunk, std::uint32_t column) const {
    return lines + (chunk * columns + column) * dpf::kLineWords;
  }
  /// Bytes of a row, rounded up to a whole word.
  NESCIO_INLINE std::uint32_t padded_bytes() const { return shape.bits() ? columns / 8 : columns; }
};

/// Bytes first_byte..first_byte+bytes-1 of the rows of some bins, in device memory, `stride` apart.
struct RowsPart {
  const std::uint8_t* data;
  std::uint64_t bins;
  std::uint64_t count;  ///< rows of each bin
  std::uint64_t stride;
  std::uint32_t first_byte;
  std::uint32_t bytes;
};

/// Stores a part of some rows in the table, in each bin beginning with chunk `first`. The rest of a bin's
/// last chunk and the padding of rows become zero. One thread per word of a byte's columns.
struct StoreRows {
  static constexpr unsigned kThreads = 128;
  static constexpr bool kCooperative = false;

  LineTable table;
  RowsPart from;
  std::uint64_t first;

  NESCIO_INLINE std::uint32_t bytes() const {
    const bool last = from.first_byte + from.bytes == table.row_bytes;
    return last ? table.padded_bytes() - from.first_byte : from.bytes;
  }
  NESCIO_INLINE std::uint64_t chunks() const { return ceil_div(from.count, table.shape.rows()); }
  NESCIO_INLINE std::uint64_t threads() const {
    return from.bins * chunks() * dpf::kLineWords * bytes();
  }
  gpu::Grid grid() const { return {static_cast<std::uint32_t>(ceil_div(threads(), kThreads)), 1}; }

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const std::uint64_t id = std::uint64_t{block.x()} * kThreads + block.thread();
    if (id >= threads()) return;
    const auto byte = from.first_byte + static_cast<std::uint32_t>(id % bytes());
    const std::uint64_t position = id / bytes();
    const auto word = static_cast<std::uint32_t>(position % dpf::kLineWords);
    const std::uint64_t bin = position / dpf::kLineWords / chunks();
    const std::uint64_t chunk = position / dpf::kLineWords % chunks();
    const std::uint64_t row = chunk * table.shape.rows() + word * (table.shape.bits() ? 32 : 4);
    const std::uint64_t to = bin * table.chunks() + first + chunk;
    if (!table.shape.bits()) {
      std::uint32_t value = 0;
      for (unsigned i = 0; i < 4; ++i) value |= std::uint32_t{at(bin, row + i, byte)} << (8 * i);
      table.line(to, byte)[word] = value;
      return;
    }
    std::uint32_t columns[8] = {};
    for (unsigned group = 0; group < 4; ++group) {
      std::uint64_t bytes = 0;
      for (unsigned i = 0; i < 8; ++i) {
        bytes |= std::uint64_t{at(bin, row + 8 * group + i, byte)} << (8 * i);
      }
      bytes = transpose_bits(bytes);
      for (unsigned c = 0; c < 8; ++c) {
        columns[c] |= static_cast<std::uint32_t>((bytes >> (8 * c)) & 0xFF) << (8 * group);
      }
    }
    for (unsigned c = 0; c < 8; ++c) {
      table.line(to, 8 * byte + c)[word] = columns[c];
    }
  }

 private:
  NESCIO_INLINE std::uint8_t at(std::uint64_t bin, std::uint64_t row, std::uint32_t byte) const {
    const std::uint32_t offset = byte - from.first_byte;
    if (row >= from.count || offset >= from.bytes) return 0;
    return from.data[(bin * from.count + row) * from.stride + offset];
  }
};

/// Overwrites the rows at some positions, which are distinct: position p is row p % rows of chunk p / rows,
/// for chunks of `rows` rows. One thread per byte.
struct ReplaceRows {
  static constexpr unsigned kThreads = 128;
  static constexpr bool kCooperative = false;

  LineTable table;
  const std::uint64_t* positions;
  const std::uint8_t* rows;
  std::uint64_t count;

  NESCIO_INLINE std::uint64_t threads() const { return count * table.row_bytes; }
  gpu::Grid grid() const { return {static_cast<std::uint32_t>(ceil_div(threads(), kThreads)), 1}; }

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const std::uint64_t id = std::uint64_t{block.x()} * kThreads + block.thread();
    if (id >= threads()) return;
    const auto byte = static_cast<std::uint32_t>(id % table.row_bytes);
    const std::uint64_t position = positions[id / table.row_bytes];
    const std::uint64_t chunk = position / table.shape.rows();
    const auto row = static_cast<std::uint32_t>(position % table.shape.rows());
    if (!table.shape.bits()) {
      reinterpret_cast<std::uint8_t*>(table.line(chunk, byte))[row] = rows[id];
      return;
    }
    for (unsigned c = 0; c < 8; ++c) {
      // Other threads may change other bits of the word; only this thread changes this bit.
      std::uint32_t* word = table.line(chunk, 8 * byte + c) + row / 32;
      const std::uint32_t wanted = (rows[id] >> c) & 1u, found = (*word >> (row % 32)) & 1u;
      block.atomic_xor(word, (wanted ^ found) << (row % 32));
    }
  }
};

}  // namespace nescio::pir
