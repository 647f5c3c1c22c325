// Compiled for AVX2. Must not define functions that other tiers share (scripts/check_tiers.py).
#include <immintrin.h>

#include "pir/product/bit_product.h"
#include "pir/sliced.h"
#include "pir/slicer.h"

// An 8 x 8 bit matrix (eight keys' shares of eight rows) times a byte (a column's bits in those rows)
// is one lookup in a table of 16 bytes for each half of the byte. PSHUFB does 32 such lookups at once in
// tables that are registers, so no address depends on the shares.

namespace nescio::pir::avx2 {
namespace {

constexpr std::size_t kTables = kLines;  // per group, each a pair of 16 bytes
constexpr std::size_t kBlocksAhead = 2;  // prefetched, as in bit_product_avx512.cc

/// The two tables of a matrix: entry n of the lower half is its product with n, of the upper with
/// 16 n. `columns` has the matrix's column i as byte i.
inline __m256i make_tables(std::uint64_t columns) {
  const __m256i all = _mm256_set1_epi64x(static_cast<long long>(columns));
  __m256i tables = _mm256_setzero_si256();
  for (int i = 0; i < 4; ++i) {
    // Column i if bit i of the entry's number n is set; column 4 + i for the upper table.
    const __m256i own = _mm256_shuffle_epi8(
        all, _mm256_inserti128_si256(_mm256_set1_epi8(static_cast<char>(i)),
                                     _mm_set1_epi8(static_cast<char>(4 + i)), 1));
    const __m256i numbers = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    const __m256i bit = _mm256_set1_epi8(static_cast<char>(1 << i));
    const __m256i has = _mm256_cmpeq_epi8(_mm256_and_si256(numbers, bit), bit);
    tables = _mm256_xor_si256(tables, _mm256_and_si256(own, has));
  }
  return tables;
}

/// The tables of a group of up to eight keys for all lines.
void make_all_tables(const std::uint8_t* shares, std::size_t stride, std::size_t keys,
                     __m256i* tables) {
  for (std::size_t r = 0; r < kLines; r += 16) {
    __m128i x[8], y[8];
    for (std::size_t q = 0; q < kKeyGroup; ++q) {
      const auto* own = reinterpret_cast<const __m128i*>(shares + q * stride + r);
      x[q] = q < keys ? _mm_loadu_si128(own) : _mm_setzero_si128();
    }
    for (int i = 0; i < 4; ++i) {
      y[i] = _mm_unpacklo_epi8(x[2 * i], x[2 * i + 1]);
      y[4 + i] = _mm_unpackhi_epi8(x[2 * i], x[2 * i + 1]);
    }
    for (int half = 0; half < 8; half += 4) {
      for (int i = 0; i < 2; ++i) {
        x[half + i] = _mm_unpacklo_epi16(y[half + 2 * i], y[half + 2 * i + 1]);
        x[half + 2 + i] = _mm_unpackhi_epi16(y[half + 2 * i], y[half + 2 * i + 1]);
      }
    }
    for (int i = 0; i < 4; ++i) {
      y[2 * i] = _mm_unpacklo_epi32(x[2 * i], x[2 * i + 1]);
      y[2 * i + 1] = _mm_unpackhi_epi32(x[2 * i], x[2 * i + 1]);
    }
    for (std::size_t i = 0; i < 8; ++i) {
      const auto low = static_cast<std::uint64_t>(_mm_extract_epi64(y[i], 0));
      const auto high = static_cast<std::uint64_t>(_mm_extract_epi64(y[i], 1));
      tables[r + 2 * i] = make_tables(transpose_bits(low));
      tables[r + 2 * i + 1] = make_tables(transpose_bits(high));
    }
  }
}

inline __m256i load(const void* p) { return _mm256_load_si256(static_cast<const __m256i*>(p)); }
inline __m256i loadu(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }

/// Adds a block to the sums of `groups` groups, which are `sum_stride` bytes apart.
template <int groups>
inline void add_block(const std::uint8_t* block, std::size_t lines, const __m256i* tables,
                      std::uint8_t* sums, std::size_t sum_stride) {
  const __m256i nibble = _mm256_set1_epi8(15);
  __m256i total[groups][2];
  for (int g = 0; g < groups; ++g) {
    total[g][0] = load(sums + g * sum_stride);
    total[g][1] = load(sums + g * sum_stride + 32);
  }
  for (std::size_t r = 0; r < lines; ++r) {
    _mm_prefetch(block + 64 * (kBlocksAhead * lines + r), _MM_HINT_T0);
    for (int half = 0; half < 2; ++half) {
      const __m256i line = loadu(block + 64 * r + 32 * half);
      const __m256i low = _mm256_and_si256(line, nibble);
      const __m256i high = _mm256_and_si256(_mm256_srli_epi16(line, 4), nibble);
      for (int g = 0; g < groups; ++g) {
        const auto* pair = reinterpret_cast<const __m128i*>(tables + g * kTables + r);
        const __m256i low_table = _mm256_broadcastsi128_si256(_mm_load_si128(pair));
        const __m256i high_table = _mm256_broadcastsi128_si256(_mm_load_si128(pair + 1));
        total[g][half] = _mm256_xor_si256(total[g][half],
                                          _mm256_xor_si256(_mm256_shuffle_epi8(low_table, low),
                                                           _mm256_shuffle_epi8(high_table, high)));
      }
    }
  }
  for (int g = 0; g < groups; ++g) {
    for (int half = 0; half < 2; ++half) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(sums + g * sum_stride + 32 * half),
                         total[g][half]);
    }
  }
}

/// The lines of a group's sums, one for each block, are a tile of eight rows: those of its keys.
void read_sums(const std::uint8_t* sums, std::size_t first, std::size_t count,
               std::size_t row_bytes, std::uint8_t* rows) {
  const std::uint8_t* own = sums + first / kKeyGroup * block_count(row_bytes) * kLineBytes;
  kSlicer.unslice(own, 1, count, row_bytes, rows);
}

}  // namespace

std::size_t scratch_bytes(std::size_t keys) { return key_groups(keys) * kTables * 32; }

void lay_out(const std::uint8_t* shares, std::size_t stride, std::size_t keys,
             std::uint8_t* scratch) {
  auto* tables = reinterpret_cast<__m256i*>(scratch);
  for (std::size_t q = 0; q < keys; q += kKeyGroup, tables += kTables) {
    make_all_tables(shares + q * stride, stride, keys - q, tables);
  }
}

void copy_shares(const std::uint8_t* scratch, std::size_t keys, std::span<const RowPlace> rows,
                 const std::uint8_t* masks, std::uint8_t* out, std::size_t stride) {
  // The entry with the number of one bit is a column of the matrix: the shares of one row.
  constexpr std::uint8_t kEntries[kGroupRows] = {1, 2, 4, 8, 16 + 1, 16 + 2, 16 + 4, 16 + 8};
  for (std::size_t q = 0; q < keys; q += kKeyGroup, ++masks, out += stride) {
    const std::uint8_t* own = scratch + q / kKeyGroup * kTables * sizeof(__m256i);
    if (*masks == 0) continue;
    for (const RowPlace& at : rows) {
      const std::uint8_t* tables = own + at.row % kTileRows / kGroupRows * sizeof(__m256i);
      out[at.place] = tables[kEntries[at.row % kGroupRows]] & *masks;
    }
  }
}

void lay_out_copies(const std::uint8_t* copies, std::size_t stride, std::size_t lines,
                    std::size_t keys, std::uint8_t* scratch) {
  auto* tables = reinterpret_cast<__m256i*>(scratch);
  for (std::size_t q = 0; q < keys; q += kKeyGroup, tables += kTables, copies += stride) {
    for (std::size_t r = 0; r < lines; ++r) {
      std::uint64_t columns;
      __builtin_memcpy(&columns, copies + r * kGroupRows, sizeof(columns));
      tables[r] = make_tables(columns);
    }
  }
}

void add_tile(const Tile& tile, const std::uint8_t* scratch, std::size_t keys, std::uint8_t* sums) {
  const auto* tables = reinterpret_cast<const __m256i*>(scratch);
  const std::size_t groups = key_groups(keys);
  for (std::size_t block = 0; block < tile.blocks; ++block) {
    const std::uint8_t* from = tile.block(block);
    std::size_t g = 0;
    for (; g + 4 <= groups; g += 4) {
      add_block<4>(from, tile.lines, tables + g * kTables, sums + 64 * (g * tile.blocks + block),
                   64 * tile.blocks);
    }
    for (; g + 2 <= groups; g += 2) {
      add_block<2>(from, tile.lines, tables + g * kTables, sums + 64 * (g * tile.blocks + block),
                   64 * tile.blocks);
    }
    for (; g < groups; ++g) {
      add_block<1>(from, tile.lines, tables + g * kTables, sums + 64 * (g * tile.blocks + block),
                   64 * tile.blocks);
    }
  }
}

constexpr BitProduct kBitProduct = {kKeyGroup,      scratch_bytes, lay_out,  copy_shares,
                                    lay_out_copies, add_tile,      read_sums};

}  // namespace nescio::pir::avx2
