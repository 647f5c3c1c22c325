// The body of word_product*.cc: each tier's file includes it once and compiles it with its own
// flags, so that loops over a column of words become that tier's vector instructions. All of it is
// private to the file that includes it.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "pir/product/word_product.h"

namespace nescio::pir {
namespace {

__extension__ typedef unsigned __int128 WideWord;

/// The compiler's own vectors, as wide as the registers of the tier that is being compiled.
#if defined(__AVX512F__)
constexpr std::size_t kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr std::size_t kVectorBytes = 32;
#else
constexpr std::size_t kVectorBytes = 16;
#endif

template <class W>
struct VectorOf {
  typedef W Words __attribute__((vector_size(kVectorBytes)));
};

/// Bytes of a row that are multiplied with all shares at a time: a few registers.
constexpr std::size_t kColumnBytes = 64;
constexpr int kVectors = kColumnBytes / kVectorBytes;

template <class W>
W read_word(const std::uint8_t* from, std::size_t bytes = sizeof(W)) {
  W word = 0;
  std::memcpy(&word, from, bytes);
  return word;
}

/// sum += shares x rows for the words of one column of whole words.
template <class W>
void add_column(const std::uint8_t* rows, std::size_t count, std::size_t row_bytes,
                const std::uint8_t* shares, std::uint8_t* sum) {
  typename VectorOf<W>::Words total[kVectors], row[kVectors];
  std::memcpy(total, sum, sizeof(total));
  for (std::size_t r = 0; r < count; ++r) {
    const auto share = read_word<W>(shares + r * sizeof(W));
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      std::memcpy(&row[k], rows + r * row_bytes + kVectorBytes * k, kVectorBytes);
      total[k] += row[k] * share;
    }
  }
  std::memcpy(sum, total, sizeof(total));
}

/// The same for bytes, for which few CPUs have a multiplication: as 16-bit words, of whose products
/// only the lowest byte matters.
template <>
inline void add_column<std::uint8_t>(const std::uint8_t* rows, std::size_t count,
                                     std::size_t row_bytes, const std::uint8_t* shares,
                                     std::uint8_t* sum) {
  using Words = VectorOf<std::uint16_t>::Words;
  Words even[kVectors], odd[kVectors], row[kVectors];
  std::memcpy(even, sum, sizeof(even));
  for (int k = 0; k < kVectors; ++k) odd[k] = even[k] >> 8;
  for (std::size_t r = 0; r < count; ++r) {
    const std::uint16_t share = shares[r];
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      std::memcpy(&row[k], rows + r * row_bytes + kVectorBytes * k, kVectorBytes);
      even[k] += row[k] * share;
      odd[k] += (row[k] >> 8) * share;
    }
  }
  for (int k = 0; k < kVectors; ++k) even[k] = (even[k] & 0xFF) | (odd[k] << 8);
  std::memcpy(sum, even, sizeof(even));
}

/// The same for words of 128 bits.
template <>
inline void add_column<WideWord>(const std::uint8_t* rows, std::size_t count, std::size_t row_bytes,
                                 const std::uint8_t* shares, std::uint8_t* sum) {
  for (std::size_t k = 0; k < kColumnBytes; k += sizeof(WideWord)) {
    auto total = read_word<WideWord>(sum + k);
    for (std::size_t r = 0; r < count; ++r) {
      total += read_word<WideWord>(shares + r * sizeof(WideWord)) *
               read_word<WideWord>(rows + r * row_bytes + k);
    }
    std::memcpy(sum + k, &total, sizeof(total));
  }
}

/// The sum of a column's words times the shares; both need no alignment.
template <class W>
W dot(const std::uint8_t* column, const std::uint8_t* shares, std::size_t count) {
  using Words = VectorOf<W>::Words;
  constexpr std::size_t kStep = 2 * kVectorBytes;
  const std::size_t bytes = count * sizeof(W), whole = bytes / kStep * kStep;
  Words total[2] = {}, x, y;
  for (std::size_t at = 0; at < whole; at += kStep) {
#pragma GCC unroll 2
    for (std::size_t k = 0; k < 2; ++k) {
      std::memcpy(&x, column + at + k * kVectorBytes, kVectorBytes);
      std::memcpy(&y, shares + at + k * kVectorBytes, kVectorBytes);
      total[k] += x * y;
    }
  }
  total[0] += total[1];
  W sum = 0;
  for (std::size_t i = 0; i < kVectorBytes / sizeof(W); ++i) sum += total[0][i];
  for (std::size_t at = whole; at < bytes; at += sizeof(W)) {
    sum += read_word<W>(column + at) * read_word<W>(shares + at);
  }
  return sum;
}

/// The same for bytes, as 16-bit words.
template <>
inline std::uint8_t dot<std::uint8_t>(const std::uint8_t* column, const std::uint8_t* shares,
                                      std::size_t count) {
  using Words = VectorOf<std::uint16_t>::Words;
  const std::size_t whole = count / kVectorBytes * kVectorBytes;
  Words total = {}, x, y;
  for (std::size_t at = 0; at < whole; at += kVectorBytes) {
    std::memcpy(&x, column + at, kVectorBytes);
    std::memcpy(&y, shares + at, kVectorBytes);
    total += x * y + (x >> 8) * (y >> 8);
  }
  unsigned sum = 0;
  for (std::size_t i = 0; i < kVectorBytes / 2; ++i) sum += total[i];
  for (std::size_t at = whole; at < count; ++at) sum += unsigned{column[at]} * shares[at];
  return static_cast<std::uint8_t>(sum);
}

/// The same for words of 128 bits.
template <>
inline WideWord dot<WideWord>(const std::uint8_t* column, const std::uint8_t* shares,
                              std::size_t count) {
  WideWord sum = 0;
  for (std::size_t at = 0; at < count * sizeof(sum); at += sizeof(sum)) {
    sum += read_word<WideWord>(column + at) * read_word<WideWord>(shares + at);
  }
  return sum;
}

/// Bytes of columns that are copied at a time: they stay in the first-level cache for all keys.
constexpr std::size_t kTailBytes = 16 << 10;

/// Copies the first `bytes` bytes of each row to a column of words, where a row has as many.
///
/// A whole word is read at each row, which may include the next row's bytes, but not from the last
/// rows: a copy of another size than a word's takes several moves.
template <class W>
void copy_column(const std::uint8_t* rows, std::size_t count, std::size_t row_bytes,
                 std::size_t bytes, std::uint8_t* column) {
  const std::size_t beyond = (sizeof(W) - bytes + row_bytes - 1) / row_bytes;
  const std::size_t whole = count > beyond ? count - beyond : 0;
  const W mask = static_cast<W>(static_cast<W>(~W{0}) >> (8 * (sizeof(W) - bytes)));
  for (std::size_t r = 0; r < count; ++r) {
    const std::uint8_t* row = rows + r * row_bytes;
    const W word = r < whole ? read_word<W>(row) & mask : read_word<W>(row, bytes);
    std::memcpy(column + r * sizeof(W), &word, sizeof(W));
  }
}

/// Converts rows that are one narrower word each to a column of words.
template <class W, class Narrow>
void widen_rows(const std::uint8_t* __restrict rows, std::size_t count,
                std::uint8_t* __restrict column) {
  for (std::size_t r = 0; r < count; ++r) {
    const W word = read_word<Narrow>(rows + r * sizeof(Narrow));
    std::memcpy(column + r * sizeof(W), &word, sizeof(W));
  }
}

/// Copies whole rows of `words` words to columns, `column_bytes` apart, with space for a multiple of
/// 64 rows. Compilers turn the loop of fixed length into shuffles of vectors.
template <class W, std::size_t words>
void split_rows(const std::uint8_t* rows, std::size_t count, std::uint8_t* columns,
                std::size_t column_bytes) {
  constexpr std::size_t kRows = 64;
  alignas(64) W part[words][kRows];
  const auto split = [&part, &rows](std::size_t present) {
    for (std::size_t r = 0; r < present; ++r) {
#pragma GCC unroll 16
      for (std::size_t k = 0; k < words; ++k) {
        part[k][r] = read_word<W>(rows + (r * words + k) * sizeof(W));
      }
    }
  };
  for (; count > 0; count -= count < kRows ? count : kRows) {
    if (count >= kRows) {
      split(kRows);
    } else {
      split(count);
    }
    for (std::size_t k = 0; k < words; ++k) {
      std::memcpy(columns + k * column_bytes, part[k], sizeof(part[k]));
    }
    rows += kRows * words * sizeof(W);
    columns += kRows * sizeof(W);
  }
}

/// Copies the first `tail` bytes of each row to columns of words, `column_bytes` apart.
template <class W>
void copy_columns(const std::uint8_t* rows, std::size_t count, std::size_t row_bytes,
                  std::size_t tail, std::uint8_t* columns, std::size_t column_bytes) {
  if (tail == row_bytes) {
    switch (row_bytes) {
      case 1: return widen_rows<W, std::uint8_t>(rows, count, columns);
      case 2: return widen_rows<W, std::uint16_t>(rows, count, columns);
      case 2 * sizeof(W): return split_rows<W, 2>(rows, count, columns, column_bytes);
      case 3 * sizeof(W): return split_rows<W, 3>(rows, count, columns, column_bytes);
      case 4 * sizeof(W): return split_rows<W, 4>(rows, count, columns, column_bytes);
      case 8 * sizeof(W): return split_rows<W, 8>(rows, count, columns, column_bytes);
      default: break;
    }
  }
  for (std::size_t from = 0; from < tail; from += sizeof(W), columns += column_bytes) {
    const std::size_t present = tail - from < sizeof(W) ? tail - from : sizeof(W);
    copy_column<W>(rows + from, count, row_bytes, present, columns);
  }
}

/// The same for bytes; the last columns of eight may be zeros.
template <>
inline void copy_columns<std::uint8_t>(const std::uint8_t* rows, std::size_t count,
                                       std::size_t row_bytes, std::size_t tail,
                                       std::uint8_t* columns, std::size_t column_bytes) {
  if (row_bytes == 2) return split_rows<std::uint8_t, 2>(rows, count, columns, column_bytes);
  if (row_bytes == 4) return split_rows<std::uint8_t, 4>(rows, count, columns, column_bytes);
  for (std::size_t from = 0; from < tail; from += 8, columns += 8 * column_bytes) {
    constexpr std::size_t kRows = 256;
    alignas(64) std::uint8_t eight[8 * kRows];
    const std::size_t present = tail - from < 8 ? tail - from : 8;
    for (std::size_t first = 0; first < count; first += kRows) {
      const std::size_t part = count - first < kRows ? count - first : kRows;
      copy_column<std::uint64_t>(rows + first * row_bytes + from, part, row_bytes, present, eight);
      split_rows<std::uint8_t, 8>(eight, part, columns + first, column_bytes);
    }
  }
}

/// Adds the columns from byte `from`, fewer than kColumnBytes: copied once for all keys, so that a
/// vector has one column of many rows.
template <class W, W (*sum_products)(const std::uint8_t*, const std::uint8_t*, std::size_t)>
void add_tail(const std::uint8_t* rows, std::size_t count, std::size_t row_bytes, std::size_t from,
              const std::uint8_t* shares, std::size_t stride, std::size_t keys, std::uint8_t* sums,
              std::size_t sum_stride) {
  const std::size_t tail = row_bytes - from, words = (tail + sizeof(W) - 1) / sizeof(W);
  if (tail == 0) return;
  const bool in_place = row_bytes == sizeof(W);
  const std::size_t most = in_place ? count : kTailBytes / ((tail + 15) / 16 * 16) / 64 * 64;
  alignas(64) std::uint8_t buffer[kTailBytes];
  for (std::size_t first = 0; first < count; first += most) {
    const std::size_t part = count - first < most ? count - first : most;
    const std::uint8_t* columns = rows + first * row_bytes;
    if (!in_place) {
      copy_columns<W>(columns + from, part, row_bytes, tail, buffer, most * sizeof(W));
      columns = buffer;
    }
    for (std::size_t q = 0; q < keys; ++q) {
      for (std::size_t k = 0; k < words; ++k) {
        std::uint8_t* const own = sums + q * sum_stride + from + k * sizeof(W);
        const W sum =
            read_word<W>(own) + sum_products(columns + k * most * sizeof(W),
                                             shares + q * stride + first * sizeof(W), part);
        std::memcpy(own, &sum, sizeof(sum));
      }
    }
  }
}

/// Adds the columns of 64 bytes; returns the byte of a row at which the rest begins.
template <class W>
std::size_t add_whole_columns(const std::uint8_t* rows, std::size_t count, std::size_t row_bytes,
                              const std::uint8_t* shares, std::size_t stride, std::size_t keys,
                              std::uint8_t* sums, std::size_t sum_stride) {
  const std::size_t whole = row_bytes / kColumnBytes * kColumnBytes;
  for (std::size_t q = 0; q < keys; ++q) {
    for (std::size_t from = 0; from < whole; from += kColumnBytes) {
      add_column<W>(rows + from, count, row_bytes, shares + q * stride,
                    sums + q * sum_stride + from);
    }
  }
  return whole;
}

template <class W>
void add_words(const std::uint8_t* rows, std::size_t count, std::size_t row_bytes,
               const std::uint8_t* shares, std::size_t stride, std::size_t keys, std::uint8_t* sums,
               std::size_t sum_stride) {
  const std::size_t whole =
      add_whole_columns<W>(rows, count, row_bytes, shares, stride, keys, sums, sum_stride);
  add_tail<W, dot<W>>(rows, count, row_bytes, whole, shares, stride, keys, sums, sum_stride);
}

inline AddRows choose(dpf::Output output) {
  switch (output) {
    case dpf::Output::u32: return add_words<std::uint32_t>;
    case dpf::Output::u64: return add_words<std::uint64_t>;
    case dpf::Output::u128: return add_words<WideWord>;
    default: return add_words<std::uint8_t>;
  }
}

}  // namespace
}  // namespace nescio::pir
