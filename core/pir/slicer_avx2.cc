// Compiled for AVX2. Must not define functions that other tiers share (scripts/check_tiers.py).
#include <immintrin.h>

#include "pir/slicer_impl.h"

namespace nescio::pir::avx2 {
namespace {

/// Each bit of `word` becomes a byte of all ones or zero, of which the row's bit is stored.
void set_row(std::uint64_t word, std::size_t row, std::uint8_t* line) {
  const __m256i bytes = _mm256_set1_epi64x(static_cast<long long>(word));
  const __m256i bit_of_column = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201));
  const __m256i bit_of_row = _mm256_set1_epi8(static_cast<char>(1 << row));
  for (int half = 0; half < 2; ++half) {
    const __m256i byte_of_column = _mm256_add_epi8(
        _mm256_set1_epi8(static_cast<char>(4 * half)),
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
    const __m256i own = _mm256_and_si256(_mm256_shuffle_epi8(bytes, byte_of_column), bit_of_column);
    const __m256i is_set = _mm256_cmpeq_epi8(own, bit_of_column);
    auto* columns = reinterpret_cast<__m256i*>(line) + half;
    _mm256_storeu_si256(
        columns,
        _mm256_blendv_epi8(_mm256_andnot_si256(bit_of_row, _mm256_loadu_si256(columns)),
                           _mm256_or_si256(bit_of_row, _mm256_loadu_si256(columns)), is_set));
  }
}

/// The row's bit of each byte becomes its highest one. What the shift moves between bytes is below it.
std::uint64_t get_row(const std::uint8_t* line, std::size_t row) {
  const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(7 - row));
  const auto half = [&](std::size_t i) {
    const __m256i columns =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(line + kLineBytes / 2 * i));
    return std::uint64_t{
        static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_sll_epi64(columns, shift)))};
  };
  return half(0) | half(1) << 32;
}

}  // namespace

const Slicer kSlicer = {slice_words_of, unslice_words_of, read_lines<get_row>,
                        overwrite_lines<set_row>};

}  // namespace nescio::pir::avx2
