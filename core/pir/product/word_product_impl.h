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

/// Rows whose last columns are copied at a time.
constexpr std::size_t kTailRows = 64;

/// Adds the columns from byte `from`, fewer than kColumnBytes: copied once for all keys, padded with
/// zeros to a whole column.
template <class W>
void add_tail(const std::uint8_t* rows, std::size_t count, std::size_t row_bytes, std::size_t from,
              const std::uint8_t* shares, std::size_t stride, std::size_t keys, std::uint8_t* sums,
              std::size_t sum_stride) {
  const std::size_t tail = row_bytes - from;
  if (tail == 0) return;
  const std::size_t sum_bytes = (tail + sizeof(W) - 1) / sizeof(W) * sizeof(W);
  alignas(64) std::uint8_t columns[kTailRows * kColumnBytes] = {};
  for (std::size_t first = 0; first < count; first += kTailRows) {
    const std::size_t part = count - first < kTailRows ? count - first : kTailRows;
    for (std::size_t r = 0; r < part; ++r) {
      std::memcpy(columns + r * kColumnBytes, rows + (first + r) * row_bytes + from, tail);
    }
    for (std::size_t q = 0; q < keys; ++q) {
      alignas(64) std::uint8_t sum[kColumnBytes] = {};
      std::uint8_t* const own = sums + q * sum_stride + from;
      std::memcpy(sum, own, sum_bytes);
      add_column<W>(columns, part, kColumnBytes, shares + q * stride + first * sizeof(W), sum);
      std::memcpy(own, sum, sum_bytes);
    }
  }
}

template <class W>
void add_words(const std::uint8_t* rows, std::size_t count, std::size_t row_bytes,
               const std::uint8_t* shares, std::size_t stride, std::size_t keys, std::uint8_t* sums,
               std::size_t sum_stride) {
  const std::size_t whole = row_bytes / kColumnBytes * kColumnBytes;
  for (std::size_t q = 0; q < keys; ++q) {
    for (std::size_t from = 0; from < whole; from += kColumnBytes) {
      add_column<W>(rows + from, count, row_bytes, shares + q * stride,
                    sums + q * sum_stride + from);
    }
  }
  add_tail<W>(rows, count, row_bytes, whole, shares, stride, keys, sums, sum_stride);
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
