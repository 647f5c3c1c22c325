// Compiled for AVX2. Must not define functions that other tiers share (scripts/check_tiers.py).
#include <immintrin.h>

#include "rlwe/kernels.h"

namespace nescio::rlwe {
namespace {

/// Eight words.
struct Vector {
  static constexpr std::size_t kLanes = 8;

  /// The products of words 0, 2, 4, 6 and of words 1, 3, 5, 7.
  struct Products {
    __m256i even, odd;
    void operator+=(const Products& y) {
      even = _mm256_add_epi64(even, y.even);
      odd = _mm256_add_epi64(odd, y.odd);
    }
  };
  template <std::size_t t>
  struct Halves;

  __m256i x;

  static Vector load(const std::uint32_t* from) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))};
  }
  static Vector broadcast(std::uint32_t word) {
    return {_mm256_set1_epi32(static_cast<int>(word))};
  }
  void store(std::uint32_t* to) const { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), x); }
};

inline Vector operator+(Vector a, Vector b) { return {_mm256_add_epi32(a.x, b.x)}; }
inline Vector operator-(Vector a, Vector b) { return {_mm256_sub_epi32(a.x, b.x)}; }
inline Vector min(Vector a, Vector b) { return {_mm256_min_epu32(a.x, b.x)}; }
inline Vector multiply_low(Vector a, Vector b) { return {_mm256_mullo_epi32(a.x, b.x)}; }
inline Vector::Products multiply(Vector a, Vector b) {
  return {_mm256_mul_epu32(a.x, b.x),
          _mm256_mul_epu32(_mm256_srli_epi64(a.x, 32), _mm256_srli_epi64(b.x, 32))};
}
inline Vector high(const Vector::Products& x) {
  return {_mm256_blend_epi32(_mm256_srli_epi64(x.even, 32), x.odd, 0xAA)};
}
inline Vector low(const Vector::Products& x) {
  return {_mm256_blend_epi32(x.even, _mm256_slli_epi64(x.odd, 32), 0xAA)};
}

/// Lane j of the result is from[i_j].
inline Vector pick_words(const std::uint32_t* from, __m256i indices) {
  return {_mm256_permutevar8x32_epi32(Vector::load(from).x, indices)};
}

// The order of the words in u and v (those of v have bit t more):
//
//   t = 4    0 1 2 3   8 9 10 11
//   t = 2    0 1 4 5   8 9 12 13
//   t = 1    0 4 2 6   8 12 10 14

template <>
struct Vector::Halves<4> {
  static void split(Vector& u, Vector& v) {
    const Vector lower = {_mm256_permute2x128_si256(u.x, v.x, 0x20)};
    v = {_mm256_permute2x128_si256(u.x, v.x, 0x31)};
    u = lower;
  }
  static void merge(Vector& u, Vector& v) { split(u, v); }
  static Vector twiddles(const std::uint32_t* w) {
    return pick_words(w, _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
  }
};

template <>
struct Vector::Halves<2> {
  static void split(Vector& u, Vector& v) {
    const Vector lower = {_mm256_unpacklo_epi64(u.x, v.x)};
    v = {_mm256_unpackhi_epi64(u.x, v.x)};
    u = lower;
  }
  static void merge(Vector& u, Vector& v) { split(u, v); }
  static Vector twiddles(const std::uint32_t* w) {
    return pick_words(w, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3));
  }
};

template <>
struct Vector::Halves<1> {
  static void split(Vector& u, Vector& v) {
    const __m256 a = _mm256_castsi256_ps(u.x), b = _mm256_castsi256_ps(v.x);
    u = {_mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88))};
    v = {_mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xDD))};
  }
  static void merge(Vector& u, Vector& v) {
    const Vector lower = {_mm256_unpacklo_epi32(u.x, v.x)};
    v = {_mm256_unpackhi_epi32(u.x, v.x)};
    u = lower;
  }
  static Vector twiddles(const std::uint32_t* w) {
    return pick_words(w, _mm256_setr_epi32(0, 2, 1, 3, 4, 6, 5, 7));
  }
};

}  // namespace
}  // namespace nescio::rlwe

#include "rlwe/coefficients_impl.h"
#include "rlwe/ntt_impl.h"

namespace nescio::rlwe::avx2 {

NESCIO_DEFINE_RLWE_KERNELS

}  // namespace nescio::rlwe::avx2
