// Compiled for AVX-512, VNNI and VBMI. Includes nothing that could leave shared code behind.
#include <immintrin.h>

#include "bitserial/lanes_avx512_impl.h"
#include "bitserial/product.h"
#include "bitserial/tables_avx512.h"

// Fields are used in place: an AND turns a register into the bytes 2^(w f) u of 64 weights, and
// VPDPBUSD adds their products with 4 activations, the same in every lane, to the sums of 16 rows.
// Each field has separate sums, which are shifted once, at the end. Activations of 16 and 32 bits
// consist of signed digits of 8 bits, x = 2^(k-8) top + sum of 2^(8 d) (low_d + 128). The
// contribution of the offset 128 is a multiple of the sum of the codes, which is stored after each
// part.

namespace nescio::bitserial::avx512 {
namespace {

constexpr unsigned kMaxWidth = 8;

// ---- Products of parts and digits ---------------------------------------------------------------

/// Adds the products of `rows` registers of chunks, from register `from` on, and `digits` digit
/// vectors.
template <int fields, int digits, int rows>
inline void multiply_slice(const PackedPart& packed, std::size_t from, std::size_t first,
                           std::size_t last, const std::int8_t* const* digit,
                           const unsigned* shifts, std::int64_t* const* totals) {
  __m512i sums[rows][digits][fields];
  const std::size_t step = packed.registers * kRegisterBytes;
  multiply_fields<fields, digits, rows>(packed.data + from * kRegisterBytes + first * step, step,
                                        last - first, digit, first * fields * 4, sums);
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < digits; ++i) {
      add_sums(joined(sums[r][i]), shifts[i], totals[i] + (from + r) * kRegisterRows);
    }
  }
}

/// Registers of weights whose sums, masks and activations fit in the 32 vector registers.
constexpr std::size_t rows_at_once(int fields, int digits) {
  return fields * digits >= 16 ? 1 : fields * digits >= 8 ? 2 : 4;
}

template <int fields, int digits>
void multiply_digits(const PackedPart& packed, std::size_t first, std::size_t last,
                     const std::int8_t* const* digit, const unsigned* shifts,
                     std::int64_t* const* totals) {
  constexpr std::size_t rows = rows_at_once(fields, digits);
  std::size_t r = 0;
  for (; r + rows <= packed.registers; r += rows) {
    multiply_slice<fields, digits, rows>(packed, r, first, last, digit, shifts, totals);
  }
  for (; r < packed.registers; ++r) {
    multiply_slice<fields, digits, 1>(packed, r, first, last, digit, shifts, totals);
  }
}

/// Multiplies by the digits of all vectors, four, two or one digit vector at a time.
template <int fields>
void multiply_all(const PackedPart& packed, const std::int8_t* const* digit, const unsigned* shifts,
                  std::int64_t* const* totals, std::size_t digits) {
  constexpr std::size_t per_pass = fields == 8 ? 2 : 4;
  // Weights that are read more than once are read in slices of 64 KB, which stay in the cache.
  constexpr std::size_t cached = 256;
  const bool once =
      digits == 1 || (digits <= per_pass && rows_at_once(fields, per_pass) == kBlockRegisters);
  const std::size_t slice = once ? kSliceColumns / chunk_columns(packed.width) : cached;
  const std::size_t chunks = chunks_of(packed.columns, packed.width);
  for (std::size_t first = 0; first < chunks; first += slice) {
    const std::size_t last = chunks - first < slice ? chunks : first + slice;
    std::size_t i = 0;
    for (; i + per_pass <= digits; i += per_pass) {
      multiply_digits<fields, per_pass>(packed, first, last, digit + i, shifts + i, totals + i);
    }
    for (; i + 2 <= digits; i += 2) {
      multiply_digits<fields, 2>(packed, first, last, digit + i, shifts + i, totals + i);
    }
    for (; i < digits; ++i) {
      multiply_digits<fields, 1>(packed, first, last, digit + i, shifts + i, totals + i);
    }
  }
}

// ---- A vector's layout --------------------------------------------------------------------------

/// The offsets of digits and tables in the bytes of a vector.
struct VectorLayout {
  unsigned digits = 0;
  std::size_t digit_bytes = 0;
  std::size_t tables[3] = {};  // for each part that uses tables
  std::size_t bytes = 0;
};

VectorLayout layout_of(const Weights& weights, const Parts& parts, unsigned activation_bits) {
  VectorLayout layout;
  for (unsigned i = 0; i < parts.count; ++i) {
    if (!uses_tables(weights, parts.parts[i].width, activation_bits)) {
      layout.digits = activation_bits / 8;
    }
  }
  layout.digit_bytes = (weights.columns + 63) / 64 * 64;
  layout.bytes = layout.digits * layout.digit_bytes;
  for (unsigned i = 0; i < parts.count; ++i) {
    const unsigned width = parts.parts[i].width;
    if (!uses_tables(weights, width, activation_bits)) continue;
    layout.tables[i] = layout.bytes;
    layout.bytes += tables_bytes(weights.columns, width, activation_bits);
  }
  return layout;
}

std::size_t vector_bytes(const Weights& weights, unsigned activation_bits) {
  return layout_of(weights, parts_of(weights.bits, kMaxWidth), activation_bits).bytes;
}

/// Writes byte d of each value, minus 128 unless it is the highest.
void store_digit(const std::int32_t* x, std::size_t n, unsigned d, bool highest, std::uint8_t* to) {
  const __m128i sign_flip = _mm_set1_epi8(highest ? 0 : static_cast<char>(0x80));
  for (std::size_t j = 0; j < n; j += 16) {
    const auto mask = static_cast<__mmask16>(n - j < 16 ? (1u << (n - j)) - 1 : 0xFFFF);
    const __m512i values = _mm512_maskz_loadu_epi32(mask, x + j);
    const __m128i bytes = _mm512_cvtepi32_epi8(_mm512_srli_epi32(values, 8 * d));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + j), _mm_xor_si128(bytes, sign_flip));
  }
  for (std::size_t j = (n + 15) / 16 * 16; j % 64 != 0; j += 16) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + j), _mm_setzero_si128());
  }
}

std::int64_t sum_of(const std::int32_t* x, std::size_t n) {
  __m512i sum = _mm512_setzero_si512();
  for (std::size_t j = 0; j < n; j += 8) {
    const auto mask = static_cast<__mmask8>(n - j < 8 ? (1u << (n - j)) - 1 : 0xFF);
    sum = _mm512_add_epi64(sum, _mm512_cvtepi32_epi64(_mm256_maskz_loadu_epi32(mask, x + j)));
  }
  return _mm512_reduce_add_epi64(sum);
}

std::int64_t pack_vector(const Weights& weights, const std::int32_t* x, unsigned activation_bits,
                         std::uint8_t* vector) {
  const Parts parts = parts_of(weights.bits, kMaxWidth);
  const VectorLayout layout = layout_of(weights, parts, activation_bits);
  for (unsigned d = 0; d < layout.digits; ++d) {
    store_digit(x, weights.columns, d, d + 1 == layout.digits, vector + d * layout.digit_bytes);
  }
  for (unsigned i = 0; i < parts.count; ++i) {
    const unsigned width = parts.parts[i].width;
    if (!uses_tables(weights, width, activation_bits)) continue;
    make_tables(x, weights.columns, width, activation_bits, vector + layout.tables[i]);
  }
  return sum_of(x, weights.columns);
}

// ---- Blocks -------------------------------------------------------------------------------------

/// Adds the contribution of the offset 128 of the digits: the sum of 2^(8 d) 128 over all digits
/// but the highest, times the sums of the codes.
void add_digit_offsets(const PackedPart& packed, unsigned digits, std::size_t vectors,
                       Totals& totals) {
  if (digits == 1) return;
  const std::int64_t offset = digits == 2 ? 0x80 : 0x808080;
  const auto* sums =
      packed.data + chunks_of(packed.columns, packed.width) * packed.registers * kRegisterBytes;
  for (std::size_t i = 0; i < packed.registers * kRegisterRows; i += 8) {
    const __m512i eight = _mm512_cvtepi32_epi64(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sums + i * sizeof(std::int32_t))));
    const __m512i added =
        _mm512_slli_epi64(_mm512_mul_epi32(eight, _mm512_set1_epi64(offset)), packed.exponent);
    for (std::size_t v = 0; v < vectors; ++v) {
      _mm512_storeu_si512(totals[v] + i,
                          _mm512_add_epi64(_mm512_loadu_si512(totals[v] + i), added));
    }
  }
}

void add_products(const PackedPart& packed, const Activations& x, const VectorLayout& layout,
                  Totals& totals) {
  const std::int8_t* digit[4 * kMaxVectors];
  unsigned shifts[4 * kMaxVectors];
  std::int64_t* sums[4 * kMaxVectors];
  std::size_t digits = 0;
  for (std::size_t v = 0; v < x.batch; ++v) {
    for (unsigned d = 0; d < layout.digits; ++d, ++digits) {
      digit[digits] = reinterpret_cast<const std::int8_t*>(x.vectors + v * x.vector_bytes +
                                                           d * layout.digit_bytes);
      shifts[digits] = 8 * d + packed.exponent;
      sums[digits] = totals[v];
    }
  }
  add_digit_offsets(packed, layout.digits, x.batch, totals);
  switch (packed.width) {
    case 8: return multiply_all<1>(packed, digit, shifts, sums, digits);
    case 4: return multiply_all<2>(packed, digit, shifts, sums, digits);
    case 2: return multiply_all<4>(packed, digit, shifts, sums, digits);
    default: return multiply_all<8>(packed, digit, shifts, sums, digits);
  }
}

/// The products of one block, whose parts begin at `data`.
void multiply_block(const Weights& weights, const Parts& parts, const VectorLayout& layout,
                    const Activations& x, const std::uint8_t* data, std::size_t rows,
                    std::int64_t* y) {
  alignas(64) Totals totals;
  const std::size_t registers = registers_of(rows);
  for (std::size_t v = 0; v < x.batch; ++v) {
    const __m512i start = _mm512_set1_epi64(-code_offset(weights.bits) * x.sums[v]);
    for (std::size_t i = 0; i < registers * kRegisterRows; i += 8) {
      _mm512_store_si512(totals[v] + i, start);
    }
  }
  for (unsigned i = 0; i < parts.count; ++i) {
    const Part& part = parts.parts[i];
    const PackedPart packed = {data, registers, weights.columns, part.width, part.exponent};
    if (uses_tables(weights, part.width, x.bits)) {
      add_lookups(packed, x.vectors + layout.tables[i], x.vector_bytes, x.batch, x.bits, totals);
    } else {
      add_products(packed, x, layout, totals);
    }
    data += registers * part_bytes(weights.columns, part.width);
  }
  for (std::size_t v = 0; v < x.batch; ++v, y += weights.rows) {
    __builtin_memcpy(y, totals[v], rows * sizeof(*y));
  }
}

void multiply(const Weights& weights, const Activations& x, std::size_t first_row, std::size_t rows,
              std::int64_t* y) {
  const Parts parts = parts_of(weights.bits, kMaxWidth);
  const VectorLayout layout = layout_of(weights, parts, x.bits);
  std::size_t register_bytes = 0;
  for (unsigned i = 0; i < parts.count; ++i) {
    register_bytes += part_bytes(weights.columns, parts.parts[i].width);
  }
  for (std::size_t i = first_row; i < first_row + rows; i += kBlockRows) {
    const std::size_t left = first_row + rows - i;
    multiply_block(weights, parts, layout, x, weights.packed + i / kRegisterRows * register_bytes,
                   left < kBlockRows ? left : kBlockRows, y + i);
  }
}

std::size_t packed_bytes(const Planes& planes) {
  return packed_fields_bytes(planes, parts_of(planes.bits, kMaxWidth));
}

void pack(const Planes& planes, std::uint8_t* packed) {
  pack_fields(planes, parts_of(planes.bits, kMaxWidth), packed);
}

}  // namespace

const Kernels kKernels = {packed_bytes, pack, vector_bytes, pack_vector, multiply};

}  // namespace nescio::bitserial::avx512
