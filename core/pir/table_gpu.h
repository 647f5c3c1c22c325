#pragma once

// A table as lines in a GPU's memory (see dpf/lines.h), and the kernels that put rows there.

#include <cstddef>
#include <cstdint>

#include "base/bits.h"
#include "dpf/lines.h"
#include "gpu/thread_block.h"

namespace nescio::pir {

/// The lines of a table: `columns` a chunk, a multiple of 64, the last of which may be padding.
struct LineTable {
  std::uint32_t* lines;
  dpf::LineShape shape;
  std::uint64_t rows;
  std::uint32_t row_bytes;
  std::uint32_t columns;

  static std::uint64_t columns_for(dpf::LineShape shape, std::uint64_t row_bytes) {
    return gpu::parts(shape.bits() ? 8 * row_bytes : row_bytes, 64) * 64;
  }
  NESCIO_INLINE std::uint64_t chunks() const { return gpu::parts(rows, shape.rows()); }
  NESCIO_INLINE std::uint32_t* line(std::uint64_t chunk, std::uint32_t column) const {
    return lines + (chunk * columns + column) * dpf::kLineWords;
  }
  /// Bytes of a row with its padding.
  NESCIO_INLINE std::uint32_t padded_bytes() const { return shape.bits() ? columns / 8 : columns; }
};

/// Puts `count` rows, as they stand one after the other, into the table from row `first` (of a new
/// chunk) on; the rest of the last chunk becomes zero. A thread a word of a byte's columns.
struct TakeRows {
  static constexpr unsigned kThreads = 128;
  static constexpr bool kTogether = false;

  LineTable table;
  const std::uint8_t* rows;
  std::uint64_t first;
  std::uint64_t count;

  NESCIO_INLINE std::uint64_t threads() const {
    return gpu::parts(count, table.shape.rows()) * dpf::kLineWords * table.padded_bytes();
  }
  gpu::Grid grid() const {
    return {static_cast<std::uint32_t>(gpu::parts(threads(), kThreads)), 1};
  }

  template <class B>
  NESCIO_DEVICE void operator()(B& block) const {
    const std::uint64_t id = std::uint64_t{block.x()} * kThreads + block.thread();
    if (id >= threads()) return;
    const auto byte = static_cast<std::uint32_t>(id % table.padded_bytes());
    const std::uint64_t place = id / table.padded_bytes();
    const auto word = static_cast<std::uint32_t>(place % dpf::kLineWords);
    const std::uint64_t chunk = place / dpf::kLineWords;
    const std::uint64_t row = chunk * table.shape.rows() + word * (table.shape.bits() ? 32 : 4);
    if (!table.shape.bits()) {
      std::uint32_t value = 0;
      for (unsigned i = 0; i < 4; ++i) value |= std::uint32_t{at(row + i, byte)} << (8 * i);
      table.line(first / table.shape.rows() + chunk, byte)[word] = value;
      return;
    }
    std::uint32_t columns[8] = {};
    for (unsigned group = 0; group < 4; ++group) {
      std::uint64_t bytes = 0;
      for (unsigned i = 0; i < 8; ++i) {
        bytes |= std::uint64_t{at(row + 8 * group + i, byte)} << (8 * i);
      }
      bytes = transpose_bits(bytes);
      for (unsigned c = 0; c < 8; ++c) {
        columns[c] |= static_cast<std::uint32_t>((bytes >> (8 * c)) & 0xFF) << (8 * group);
      }
    }
    for (unsigned c = 0; c < 8; ++c) {
      table.line(first / table.shape.rows() + chunk, 8 * byte + c)[word] = columns[c];
    }
  }

 private:
  NESCIO_INLINE std::uint8_t at(std::uint64_t row, std::uint32_t byte) const {
    return row < count && byte < table.row_bytes ? rows[row * table.row_bytes + byte]
                                                 : std::uint8_t{0};
  }
};

/// Overwrites the rows at `indices`, which are all different: a thread a byte.
struct PutRows {
  static constexpr unsigned kThreads = 128;
  static constexpr bool kTogether = false;

  LineTable table;
  const std::uint64_t* indices;
  const std::uint8_t* rows;
  std::uint64_t count;

  NESCIO_INLINE std::uint64_t threads() const { return count * table.row_bytes; }
  gpu::Grid grid() const {
    return {static_cast<std::uint32_t>(gpu::parts(threads(), kThreads)), 1};
  }

  template <class B>
  NESCIO_DEVICE void operator()(B& block) const {
    const std::uint64_t id = std::uint64_t{block.x()} * kThreads + block.thread();
    if (id >= threads()) return;
    const auto byte = static_cast<std::uint32_t>(id % table.row_bytes);
    const std::uint64_t row = indices[id / table.row_bytes];
    const std::uint64_t chunk = row / table.shape.rows();
    const auto place = static_cast<std::uint32_t>(row % table.shape.rows());
    if (!table.shape.bits()) {
      reinterpret_cast<std::uint8_t*>(table.line(chunk, byte))[place] = rows[id];
      return;
    }
    for (unsigned c = 0; c < 8; ++c) {
      // Others may change other bits of the word meanwhile; this one is this thread's alone.
      std::uint32_t* word = table.line(chunk, 8 * byte + c) + place / 32;
      const std::uint32_t wanted = (rows[id] >> c) & 1u, found = (*word >> (place % 32)) & 1u;
      block.flip(word, (wanted ^ found) << (place % 32));
    }
  }
};

}  // namespace nescio::pir
