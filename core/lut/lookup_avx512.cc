#include <immintrin.h>

#include <algorithm>

#include "lut/lookup.h"

namespace nescio::lut::avx512 {
namespace {

/// The XOR of all bytes, or of all 16-bit parts.
template <class T>
T folded(__m512i x) {
  const __m256i half = _mm256_xor_si256(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
  const __m128i quarter =
      _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
  std::uint64_t word = static_cast<std::uint64_t>(_mm_cvtsi128_si64(quarter)) ^
                       static_cast<std::uint64_t>(_mm_extract_epi64(quarter, 1));
  for (unsigned shift = 32; shift >= 8 * sizeof(T); shift /= 2) word ^= word >> shift;
  return static_cast<T>(word);
}

/// Entries whose bits in the share are set. Tables of fewer than 64 entries are in the low lanes.
__m512i selected(const std::uint8_t* entries, const std::uint64_t* share, std::size_t place,
                 std::uint64_t inside) {
  return _mm512_maskz_loadu_epi8(share[place / 64] & inside, entries + place);
}

__m512i selected(const std::uint16_t* entries, const std::uint64_t* share, std::size_t place,
                 std::uint64_t inside) {
  const std::uint64_t bits = share[place / 64] >> (place % 64) & inside;
  return _mm512_maskz_loadu_epi16(static_cast<__mmask32>(bits), entries + place);
}

template <class T>
void inner_products(const Table<T>& table, std::size_t count,
                    const Words<const std::uint64_t>& shares, const std::uint16_t* opened, T* out) {
  constexpr std::size_t kStep = 64 / sizeof(T);
  const std::size_t size = std::size_t{1} << table.bits;
  const std::uint64_t inside = size >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << size) - 1;
  for (std::size_t i = 0; i < count; ++i) {
    const T* entries = table.twice + ((0 - std::size_t{opened[i]}) & (size - 1));
    __m512i sum = _mm512_setzero_si512();
    for (std::size_t place = 0; place < size; place += kStep) {
      sum = _mm512_xor_si512(sum, selected(entries, shares[i], place, inside));
    }
    out[i] = folded<T>(sum);
  }
}

}  // namespace

const Kernels kKernels{inner_products<std::uint8_t>, inner_products<std::uint16_t>};

}  // namespace nescio::lut::avx512
