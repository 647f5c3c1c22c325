// The body of slicer*.cc: each tier's file includes it once and compiles it with its own flags. All of
// it is private to the file that includes it.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "pir/sliced.h"
#include "pir/slicer.h"

namespace nescio::pir {
namespace {

/// A number that is constant for the compiler, so that copies of so many bytes are one move or two.
template <std::size_t number>
struct Constant {
  static constexpr std::size_t value = number;
};

/// Calls `use` with the constant that equals `number` (1 to 8).
template <std::size_t most = 8, class Use>
inline void with_constant(std::size_t number, Use use) {
  if constexpr (most > 1) {
    if (number < most) return with_constant<most - 1>(number, use);
  }
  use(Constant<most>{});
}

/// Calls `block(offset of its bytes in a row, constant number of them)` for each block of a tile.
template <class Block>
inline void for_each_block(std::size_t row_bytes, Block block) {
  for (std::size_t from = 0; from < row_bytes; from += kBlockColumnBytes) {
    const std::size_t left = row_bytes - from;
    with_constant(left < kBlockColumnBytes ? left : kBlockColumnBytes,
                  [&](auto bytes) { block(from, bytes); });
  }
}

/// Copies `bytes` bytes of each of up to eight rows, `stride` apart, to words and back.
template <std::size_t bytes>
inline void read_words(const std::uint8_t* rows, std::size_t present, std::size_t stride,
                       std::uint64_t* words) {
  for (std::size_t i = 0; i < kGroupRows; ++i) words[i] = 0;
  for (std::size_t i = 0; i < present; ++i) std::memcpy(&words[i], rows + i * stride, bytes);
}
template <std::size_t bytes>
inline void write_words(const std::uint64_t* words, std::size_t present, std::size_t stride,
                        std::uint8_t* rows) {
  for (std::size_t i = 0; i < present; ++i) std::memcpy(rows + i * stride, &words[i], bytes);
}

/// Slicer::slice line by line; compilers make vector code of the loops over words.
inline void slice_words_of(const std::uint8_t* rows, std::size_t count, std::size_t row_bytes,
                           std::size_t lines, std::uint8_t* tile) {
  for_each_block(row_bytes, [&](std::size_t from, auto bytes) {
    for (std::size_t row = 0; row < lines * kGroupRows; row += kGroupRows, tile += kLineBytes) {
      const std::uint8_t* own = rows + row * row_bytes + from;
      std::uint64_t words[kGroupRows];
      if (row + kGroupRows <= count) {
        read_words<bytes.value>(own, kGroupRows, row_bytes, words);
      } else {
        read_words<bytes.value>(own, count > row ? count - row : 0, row_bytes, words);
      }
      slice_words(words);
      std::memcpy(tile, words, kLineBytes);
    }
  });
}

/// The same for Slicer::unslice.
inline void unslice_words_of(const std::uint8_t* tile, std::size_t lines, std::size_t count,
                             std::size_t row_bytes, std::uint8_t* rows) {
  for_each_block(row_bytes, [&](std::size_t from, auto bytes) {
    for (std::size_t row = 0; row < count; row += kGroupRows) {
      std::uint8_t* own = rows + row * row_bytes + from;
      std::uint64_t words[kGroupRows];
      std::memcpy(words, tile + row / kGroupRows * kLineBytes, kLineBytes);
      unslice_words(words);
      if (row + kGroupRows <= count) {
        write_words<bytes.value>(words, kGroupRows, row_bytes, own);
      } else {
        write_words<bytes.value>(words, count - row, row_bytes, own);
      }
    }
    tile += lines * kLineBytes;
  });
}

/// Slicer::unslice_row, where `get_row(line, row)` returns row 0 to 7 of a line, eight bytes.
template <std::uint64_t (*get_row)(const std::uint8_t* line, std::size_t row)>
inline void read_lines(const std::uint8_t* tile, std::size_t lines, std::size_t row,
                       std::size_t row_bytes, std::uint8_t* out) {
  tile += row / kGroupRows * kLineBytes;
  for_each_block(row_bytes, [&](std::size_t from, auto bytes) {
    const std::uint64_t word = get_row(tile, row % kGroupRows);
    std::memcpy(out + from, &word, bytes.value);
    tile += lines * kLineBytes;
  });
}

/// Slicer::overwrite, where `set_row(word, row, line)` overwrites row 0 to 7 of a line by eight bytes.
template <void (*set_row)(std::uint64_t word, std::size_t row, std::uint8_t* line)>
inline void overwrite_lines(const std::uint16_t* changed, std::size_t count,
                            const std::uint8_t* rows, std::size_t row_bytes, std::size_t lines,
                            std::uint8_t* tile) {
  for_each_block(row_bytes, [&](std::size_t from, auto bytes) {
    const std::size_t next_block = from + kBlockColumnBytes < row_bytes ? lines * kLineBytes : 0;
    for (std::size_t i = 0; i < count; ++i) {
      std::uint8_t* line = tile + changed[i] / kGroupRows * kLineBytes;
      __builtin_prefetch(line + next_block, 1);
      std::uint64_t word = 0;
      std::memcpy(&word, rows + i * row_bytes + from, bytes.value);
      set_row(word, changed[i] % kGroupRows, line);
    }
    tile += lines * kLineBytes;
  });
}

}  // namespace
}  // namespace nescio::pir
