// Compiled for AVX-512 and VNNI. Must not define functions that other tiers share (scripts/check_tiers.py).
#include <immintrin.h>

#include "pir/product/word_product.h"
#include "pir/product/word_product_impl.h"

// Bytes: VPDPBUSD multiplies four bytes of a column with four shares and adds the products to a 32-bit
// word. Only its lowest byte matters mod 2^8, so the instruction may treat one factor as signed.
// Words: VPMULLD and the like, one key at a time.

namespace nescio::pir::avx512 {
namespace {

constexpr std::size_t kQuad = 4;  // rows of one VPDPBUSD

/// Interleaves 64 bytes of four rows into four registers: lane 4p + e of x[j] has the four rows' bytes in
/// column 16p + 4j + e.
inline void interleave(const std::uint8_t* rows, std::size_t row_bytes, __m512i* x) {
  __m512i row[kQuad];
  for (std::size_t r = 0; r < kQuad; ++r) row[r] = _mm512_loadu_si512(rows + r * row_bytes);
  const __m512i low01 = _mm512_unpacklo_epi8(row[0], row[1]);
  const __m512i low23 = _mm512_unpacklo_epi8(row[2], row[3]);
  const __m512i high01 = _mm512_unpackhi_epi8(row[0], row[1]);
  const __m512i high23 = _mm512_unpackhi_epi8(row[2], row[3]);
  x[0] = _mm512_unpacklo_epi16(low01, low23);
  x[1] = _mm512_unpackhi_epi16(low01, low23);
  x[2] = _mm512_unpacklo_epi16(high01, high23);
  x[3] = _mm512_unpackhi_epi16(high01, high23);
}

/// The lowest bytes of the words of four registers, in the order of the columns.
inline __m512i lowest_bytes(const __m512i* total) {
  const __m512i mask = _mm512_set1_epi32(0xFF);
  const __m512i first =
      _mm512_packus_epi32(_mm512_and_si512(total[0], mask), _mm512_and_si512(total[1], mask));
  const __m512i second =
      _mm512_packus_epi32(_mm512_and_si512(total[2], mask), _mm512_and_si512(total[3], mask));
  return _mm512_packus_epi16(first, second);
}

/// Adds 64 columns of whole quads of rows, as made by `interleave`, to the sums of `keys` keys.
template <int keys>
inline void add_bytes(const __m512i* columns, std::size_t quads, const std::uint8_t* shares,
                      std::size_t stride, std::uint8_t* sums, std::size_t sum_stride) {
  __m512i total[keys][4];
  for (int q = 0; q < keys; ++q) {
    for (int j = 0; j < 4; ++j) total[q][j] = _mm512_setzero_si512();
  }
  for (std::size_t i = 0; i < quads; ++i, columns += 4) {
#pragma GCC unroll 4
    for (int q = 0; q < keys; ++q) {
      const auto word = read_word<int>(shares + q * stride + kQuad * i);
      const __m512i share = _mm512_set1_epi32(word);
      for (int j = 0; j < 4; ++j) {
        total[q][j] = _mm512_dpbusd_epi32(total[q][j], columns[j], share);
      }
    }
  }
  for (int q = 0; q < keys; ++q) {
    std::uint8_t* sum = sums + q * sum_stride;
    _mm512_storeu_si512(sum, _mm512_add_epi8(_mm512_loadu_si512(sum), lowest_bytes(total[q])));
  }
}

/// Rows that are interleaved at a time: 16 KB of a column.
constexpr std::size_t kRows = 256;

/// Whole columns and quads of at most kRows rows.
void add_quads(const std::uint8_t* rows, std::size_t quads, std::size_t row_bytes,
               const std::uint8_t* shares, std::size_t stride, std::size_t keys, std::uint8_t* sums,
               std::size_t sum_stride) {
  __m512i columns[kRows];
  for (std::size_t from = 0; from + 64 <= row_bytes; from += 64) {
    for (std::size_t i = 0; i < quads; ++i) {
      interleave(rows + kQuad * i * row_bytes + from, row_bytes, columns + 4 * i);
    }
    std::size_t q = 0;
    for (; q + 4 <= keys; q += 4) {
      add_bytes<4>(columns, quads, shares + q * stride, stride, sums + q * sum_stride + from,
                   sum_stride);
    }
    for (; q < keys; ++q) {
      add_bytes<1>(columns, quads, shares + q * stride, stride, sums + q * sum_stride + from,
                   sum_stride);
    }
  }
}

/// The sum of a column's bytes times the shares.
std::uint8_t dot_bytes(const std::uint8_t* column, const std::uint8_t* shares, std::size_t count) {
  __m512i total[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
  std::size_t at = 0;
  for (; at + 128 <= count; at += 128) {
    for (std::size_t k = 0; k < 2; ++k) {
      total[k] = _mm512_dpbusd_epi32(total[k], _mm512_loadu_si512(column + at + 64 * k),
                                     _mm512_loadu_si512(shares + at + 64 * k));
    }
  }
  auto sum = static_cast<unsigned>(_mm512_reduce_add_epi32(_mm512_add_epi32(total[0], total[1])));
  for (; at < count; ++at) sum += unsigned{column[at]} * shares[at];
  return static_cast<std::uint8_t>(sum);
}

void add_all_bytes(const std::uint8_t* rows, std::size_t count, std::size_t row_bytes,
                   const std::uint8_t* shares, std::size_t stride, std::size_t keys,
                   std::uint8_t* sums, std::size_t sum_stride) {
  const std::size_t columns = row_bytes / kColumnBytes * kColumnBytes;
  for (std::size_t first = 0; columns > 0 && first < count; first += kRows) {
    const std::size_t part = count - first < kRows ? count - first : kRows;
    const std::size_t quads = part / kQuad, whole = first + quads * kQuad;
    add_quads(rows + first * row_bytes, quads, row_bytes, shares + first, stride, keys, sums,
              sum_stride);
    add_whole_columns<std::uint8_t>(rows + whole * row_bytes, first + part - whole, row_bytes,
                                    shares + whole, stride, keys, sums, sum_stride);
  }
  add_tail<std::uint8_t, dot_bytes>(rows, count, row_bytes, columns, shares, stride, keys, sums,
                                    sum_stride);
}

}  // namespace

AddRows word_product(dpf::Output output) {
  return output == dpf::Output::u8 ? add_all_bytes : choose(output);
}

}  // namespace nescio::pir::avx512
