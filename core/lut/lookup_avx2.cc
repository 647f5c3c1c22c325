#include <immintrin.h>

#include <cstring>

#include "lut/lookup.h"

namespace nescio::lut::avx2 {
namespace {

/// The XOR of all bytes, or of all 16-bit parts.
template <class T>
T folded(__m256i x) {
  const __m128i half = _mm_xor_si128(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  std::uint64_t word = static_cast<std::uint64_t>(_mm_cvtsi128_si64(half)) ^
                       static_cast<std::uint64_t>(_mm_extract_epi64(half, 1));
  for (unsigned shift = 32; shift >= 8 * sizeof(T); shift /= 2) word ^= word >> shift;
  return static_cast<T>(word);
}

/// All ones in byte i if bit i is set, for 32 bits.
__m256i spread(std::uint8_t, std::uint64_t bits) {
  const __m256i all = _mm256_set1_epi32(static_cast<int>(bits));
  const __m256i places =
      _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i one = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201ull));
  return _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(all, places), one), one);
}

/// All ones in 16-bit part i if bit i is set, for 16 bits.
__m256i spread(std::uint16_t, std::uint64_t bits) {
  const __m256i all = _mm256_set1_epi16(static_cast<short>(bits));
  const __m256i one = _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096,
                                        8192, 16384, static_cast<short>(0x8000));
  return _mm256_cmpeq_epi16(_mm256_and_si256(all, one), one);
}

template <class T>
void inner_products(const Table<T>& table, std::size_t count,
                    const Words<const std::uint64_t>& shares, const std::uint16_t* opened, T* out) {
  constexpr std::size_t kStep = 32 / sizeof(T);
  const std::size_t size = std::size_t{1} << table.bits;
  for (std::size_t i = 0; i < count; ++i) {
    const T* entries = table.twice + ((0 - std::size_t{opened[i]}) & (size - 1));
    __m256i sum = _mm256_setzero_si256();
    for (std::size_t place = 0; place < size; place += kStep) {
      const __m256i mask = spread(T{}, shares[i][place / 64] >> (place % 64));
      const __m256i own = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(entries + place));
      sum = _mm256_xor_si256(sum, _mm256_and_si256(mask, own));
    }
    out[i] = folded<T>(sum);
  }
}

}  // namespace

const Kernels kKernels{inner_products<std::uint8_t>, inner_products<std::uint16_t>};

}  // namespace nescio::lut::avx2
