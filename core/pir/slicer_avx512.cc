// Compiled for AVX-512. Must not define functions that other tiers share (scripts/check_tiers.py).
#include <immintrin.h>

#include "pir/slicer_impl.h"

// A line is a permutation of the bytes of eight rows, one VPERMB, and a transposition of 8 x 8 bits in
// each word. GF2P8AFFINEQB multiplies a matrix, here the data, by each byte of a word, here the unit
// vectors; its matrices have their rows in reverse order.

namespace nescio::pir::avx512 {
namespace {

constexpr std::size_t kBlocksPerLoad = 8;  // of eight bytes of a row

struct Indices {
  alignas(64) std::uint8_t values[64];
  __m512i load() const { return _mm512_load_si512(values); }
};

/// The bytes of eight rows of `bytes` bytes, as words of eight rows' bytes, the last row first.
constexpr Indices to_columns(std::size_t bytes) {
  Indices indices{};
  for (std::size_t i = 0; i < 8 * bytes; ++i) {
    indices.values[i] = static_cast<std::uint8_t>((7 - i % 8) * bytes + i / 8);
  }
  return indices;
}

/// The inverse, for words that have the first row first.
constexpr Indices to_rows(std::size_t bytes) {
  Indices indices{};
  for (std::size_t i = 0; i < 8 * bytes; ++i) {
    indices.values[i] = static_cast<std::uint8_t>(i % bytes * 8 + i / bytes);
  }
  return indices;
}

constexpr Indices to_reversed_words() {
  Indices indices{};
  for (std::size_t i = 0; i < 64; ++i) indices.values[i] = static_cast<std::uint8_t>(i ^ 7);
  return indices;
}

template <std::size_t bytes>
constexpr Indices kToColumns = to_columns(bytes);
template <std::size_t bytes>
constexpr Indices kToRows = to_rows(bytes);
constexpr Indices kToReversedWords = to_reversed_words();

/// Transposes 8 x 8 bits in each word, whose bytes are in reverse order.
inline __m512i transpose(__m512i words) {
  const __m512i units = _mm512_set1_epi64(static_cast<long long>(0x8040201008040201));
  return _mm512_gf2p8affine_epi64_epi8(units, words, 0);
}

/// Makes a line from eight rows of `bytes` bytes, packed, and the inverse.
template <std::size_t bytes>
inline __m512i to_line(__m512i rows) {
  constexpr __mmask64 kUsed = ~std::uint64_t{0} >> (64 - 8 * bytes);
  return transpose(_mm512_maskz_permutexvar_epi8(kUsed, kToColumns<bytes>.load(), rows));
}
template <std::size_t bytes>
inline __m512i from_line(__m512i line) {
  const __m512i columns = transpose(_mm512_permutexvar_epi8(kToReversedWords.load(), line));
  return _mm512_permutexvar_epi8(kToRows<bytes>.load(), columns);
}

/// A mask of the first `count` bytes, at most 64.
inline __mmask64 first_bytes(std::size_t count) {
  return _bzhi_u64(~std::uint64_t{0}, count < 64 ? static_cast<unsigned>(count) : 64);
}

/// Transposes 8 x 8 words.
inline void transpose_words(__m512i* x) {
  __m512i y[8], z[8];
  for (int i = 0; i < 4; ++i) {
    y[2 * i] = _mm512_unpacklo_epi64(x[2 * i], x[2 * i + 1]);
    y[2 * i + 1] = _mm512_unpackhi_epi64(x[2 * i], x[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      z[i + 4 * j] = _mm512_shuffle_i64x2(y[4 * j + i], y[4 * j + 2 + i], 0x88);
      z[i + 2 + 4 * j] = _mm512_shuffle_i64x2(y[4 * j + i], y[4 * j + 2 + i], 0xDD);
    }
  }
  for (int i = 0; i < 4; ++i) {
    x[i] = _mm512_shuffle_i64x2(z[i], z[4 + i], 0x88);
    x[i + 4] = _mm512_shuffle_i64x2(z[i], z[4 + i], 0xDD);
  }
}

/// slice for rows of at most eight bytes: all rows of a line are in one register.
template <std::size_t bytes>
inline void slice_narrow(const std::uint8_t* rows, std::size_t count, std::size_t lines,
                         std::uint8_t* tile) {
  const std::uint8_t* end = rows + count * bytes;
  for (std::size_t i = 0; i < lines; ++i, rows += kGroupRows * bytes, tile += kLineBytes) {
    const std::size_t left = rows < end ? static_cast<std::size_t>(end - rows) : 0;
    const __m512i own = _mm512_maskz_loadu_epi8(first_bytes(left), rows);
    _mm512_storeu_si512(tile, to_line<bytes>(own));
  }
}

template <std::size_t bytes>
inline void unslice_narrow(const std::uint8_t* tile, std::size_t count, std::uint8_t* rows) {
  std::uint8_t* end = rows + count * bytes;
  for (; rows < end; rows += kGroupRows * bytes, tile += kLineBytes) {
    const __m512i own = from_line<bytes>(_mm512_loadu_si512(tile));
    const auto left = static_cast<std::size_t>(end - rows);
    if (left >= 64) {
      _mm512_storeu_si512(rows, own);  // the next lines overwrite what is too much
    } else {
      _mm512_mask_storeu_epi8(rows, first_bytes(left), own);
    }
  }
}

/// slice for `blocks` blocks, beginning with the one at `tile`, from rows of which `used` bytes count.
template <std::size_t blocks>
inline void slice_blocks(const std::uint8_t* rows, std::size_t count, std::size_t row_bytes,
                         __mmask64 used, std::size_t lines, std::uint8_t* tile) {
  for (std::size_t line = 0; line < lines; ++line, tile += kLineBytes) {
    __m512i words[8];
    for (std::size_t i = 0; i < 8; ++i) {
      const std::size_t row = line * kGroupRows + i;
      words[i] = _mm512_maskz_loadu_epi8(row < count ? used : 0, rows + row * row_bytes);
    }
    transpose_words(words);
    for (std::size_t b = 0; b < blocks; ++b) {
      _mm512_storeu_si512(tile + b * lines * kLineBytes, to_line<8>(words[b]));
    }
  }
}

template <std::size_t blocks>
inline void unslice_blocks(const std::uint8_t* tile, std::size_t lines, std::size_t count,
                           std::size_t row_bytes, __mmask64 used, std::uint8_t* rows) {
  for (std::size_t first = 0; first < count; first += kGroupRows, tile += kLineBytes) {
    __m512i words[8];
    for (std::size_t b = 0; b < 8; ++b) {
      const std::uint8_t* line = tile + b * lines * kLineBytes;
      words[b] = b < blocks ? from_line<8>(_mm512_loadu_si512(line)) : _mm512_setzero_si512();
    }
    transpose_words(words);
    for (std::size_t i = 0; i < 8; ++i) {
      const std::size_t row = first + i;
      _mm512_mask_storeu_epi8(rows + row * row_bytes, row < count ? used : 0, words[i]);
    }
  }
}

/// Packs the even or the odd words of two vectors, or interleaves one half of each.
inline __m512i every_second(__m512i a, __m512i b, long long odd) {
  const __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
  return _mm512_permutex2var_epi64(a, _mm512_add_epi64(even, _mm512_set1_epi64(odd)), b);
}
inline __m512i interleaved(__m512i a, __m512i b, long long half) {
  const __m512i low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
  return _mm512_permutex2var_epi64(a, _mm512_add_epi64(low, _mm512_set1_epi64(4 * half)), b);
}

/// slice for `lines` whole lines of rows of 16 bytes, of which a vector holds four.
void slice_16(const std::uint8_t* rows, std::size_t lines, std::uint8_t* tile) {
  for (std::size_t line = 0; line < lines; ++line, rows += 128, tile += kLineBytes) {
    const __m512i low = _mm512_loadu_si512(rows), high = _mm512_loadu_si512(rows + 64);
    _mm512_storeu_si512(tile, to_line<8>(every_second(low, high, 0)));
    _mm512_storeu_si512(tile + lines * kLineBytes, to_line<8>(every_second(low, high, 1)));
  }
}

void unslice_16(const std::uint8_t* tile, std::size_t lines, std::uint8_t* rows) {
  for (std::size_t line = 0; line < lines; ++line, rows += 128, tile += kLineBytes) {
    const __m512i left = from_line<8>(_mm512_loadu_si512(tile));
    const __m512i right = from_line<8>(_mm512_loadu_si512(tile + lines * kLineBytes));
    _mm512_storeu_si512(rows, interleaved(left, right, 0));
    _mm512_storeu_si512(rows + 64, interleaved(left, right, 1));
  }
}

/// Calls `use(offset in a row, constant number of blocks, mask of its bytes)` for each 64 bytes of a row.
template <class Use>
inline void for_each_load(std::size_t row_bytes, Use use) {
  for (std::size_t from = 0; from < row_bytes; from += kBlocksPerLoad * kBlockColumnBytes) {
    const std::size_t blocks = block_count(row_bytes - from);
    with_constant(blocks < kBlocksPerLoad ? blocks : kBlocksPerLoad,
                  [&](auto constant) { use(from, constant, first_bytes(row_bytes - from)); });
  }
}

void slice(const std::uint8_t* rows, std::size_t count, std::size_t row_bytes, std::size_t lines,
           std::uint8_t* tile) {
  if (row_bytes <= kBlockColumnBytes) {
    return with_constant(row_bytes,
                         [&](auto bytes) { slice_narrow<bytes.value>(rows, count, lines, tile); });
  }
  if (row_bytes == 16 && count == lines * kGroupRows) return slice_16(rows, lines, tile);
  for_each_load(row_bytes, [&](std::size_t from, auto blocks, __mmask64 used) {
    slice_blocks<blocks.value>(rows + from, count, row_bytes, used, lines, tile);
    tile += blocks.value * lines * kLineBytes;
  });
}

void unslice(const std::uint8_t* tile, std::size_t lines, std::size_t count, std::size_t row_bytes,
             std::uint8_t* rows) {
  if (row_bytes <= kBlockColumnBytes) {
    return with_constant(row_bytes,
                         [&](auto bytes) { unslice_narrow<bytes.value>(tile, count, rows); });
  }
  if (row_bytes == 16 && count == lines * kGroupRows) return unslice_16(tile, lines, rows);
  for_each_load(row_bytes, [&](std::size_t from, auto blocks, __mmask64 used) {
    unslice_blocks<blocks.value>(tile, lines, count, row_bytes, used, rows + from);
    tile += blocks.value * lines * kLineBytes;
  });
}

void set_row(std::uint64_t word, std::size_t row, std::uint8_t* line) {
  const __m512i bit = _mm512_set1_epi8(static_cast<char>(1 << row));
  const __m512i others = _mm512_andnot_si512(bit, _mm512_loadu_si512(line));
  _mm512_storeu_si512(line, _mm512_mask_add_epi8(others, word, others, bit));
}

std::uint64_t get_row(const std::uint8_t* line, std::size_t row) {
  return _mm512_test_epi8_mask(_mm512_loadu_si512(line),
                               _mm512_set1_epi8(static_cast<char>(1 << row)));
}

}  // namespace

const Slicer kSlicer = {slice, unslice, read_lines<get_row>, overwrite_lines<set_row>};

}  // namespace nescio::pir::avx512
