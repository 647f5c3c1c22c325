// Compiled for AVX-512. Must not define functions that other tiers share (scripts/check_tiers.py).
#include <immintrin.h>

#include "rlwe/kernels.h"

namespace nescio::rlwe {
namespace {

/// Sixteen words.
struct Vector {
  static constexpr std::size_t kLanes = 16;

  /// The products of words 0, 2, 4, ... and of words 1, 3, 5, ...
  struct Products {
    __m512i even, odd;
    void operator+=(const Products& y) {
      even = _mm512_add_epi64(even, y.even);
      odd = _mm512_add_epi64(odd, y.odd);
    }
  };
  template <std::size_t t>
  struct Halves;

  __m512i x;

  static Vector load(const std::uint32_t* from) { return {_mm512_loadu_si512(from)}; }
  static Vector broadcast(std::uint32_t word) {
    return {_mm512_set1_epi32(static_cast<int>(word))};
  }
  void store(std::uint32_t* to) const { _mm512_storeu_si512(to, x); }
};

constexpr __mmask16 kOddWords = 0xAAAA;

inline Vector operator+(Vector a, Vector b) { return {_mm512_add_epi32(a.x, b.x)}; }
inline Vector operator-(Vector a, Vector b) { return {_mm512_sub_epi32(a.x, b.x)}; }
inline Vector min(Vector a, Vector b) { return {_mm512_min_epu32(a.x, b.x)}; }
inline Vector multiply_low(Vector a, Vector b) { return {_mm512_mullo_epi32(a.x, b.x)}; }
inline Vector::Products multiply(Vector a, Vector b) {
  return {_mm512_mul_epu32(a.x, b.x),
          _mm512_mul_epu32(_mm512_srli_epi64(a.x, 32), _mm512_srli_epi64(b.x, 32))};
}
inline Vector high(const Vector::Products& x) {
  return {_mm512_mask_blend_epi32(kOddWords, _mm512_srli_epi64(x.even, 32), x.odd)};
}
inline Vector low(const Vector::Products& x) {
  return {_mm512_mask_blend_epi32(kOddWords, x.even, _mm512_slli_epi64(x.odd, 32))};
}

/// Sixteen indices that are computed by the compiler.
struct Indices {
  alignas(64) std::uint32_t at[16];
  __m512i load() const { return _mm512_load_si512(at); }
};

/// The lane of lane `lane` of u or v, of distance t, in the words of (u, v) of distance 2 t. In each,
/// the words are sorted by their index; v has those with the bit of the distance.
template <std::size_t t>
constexpr std::uint32_t source(std::size_t lane, bool upper) {
  const std::size_t word = lane / t * 2 * t + lane % t + (upper ? t : 0);  // its index, of 32
  if (2 * t == Vector::kLanes) return static_cast<std::uint32_t>(word);
  const std::size_t above = word / (4 * t) * 2 * t + word % (2 * t);
  return static_cast<std::uint32_t>(above + (word & (2 * t) ? Vector::kLanes : 0));
}

/// The inverse of `source`: the lane, in (u, v) of distance t, of a lane of distance 2 t.
template <std::size_t t>
constexpr std::uint32_t target(std::size_t wanted) {
  for (std::size_t lane = 0; lane < 2 * Vector::kLanes; ++lane) {
    if (source<t>(lane % Vector::kLanes, lane >= Vector::kLanes) == wanted) {
      return static_cast<std::uint32_t>(lane);
    }
  }
  return 0;
}

template <auto index>
constexpr Indices indices(std::size_t offset = 0) {
  Indices all{};
  for (std::size_t lane = 0; lane < Vector::kLanes; ++lane) all.at[lane] = index(lane + offset);
  return all;
}

template <std::size_t t>
struct Vector::Halves {
  static constexpr Indices kLower = indices<[](std::size_t l) { return source<t>(l, false); }>();
  static constexpr Indices kUpper = indices<[](std::size_t l) { return source<t>(l, true); }>();
  static constexpr Indices kFirst = indices<target<t>>();
  static constexpr Indices kSecond = indices<target<t>>(kLanes);
  static constexpr Indices kGroups =
      indices<[](std::size_t l) { return static_cast<std::uint32_t>(l / t); }>();

  static void permute(Vector& u, Vector& v, const Indices& first, const Indices& second) {
    const Vector lower = {_mm512_permutex2var_epi32(u.x, first.load(), v.x)};
    v = {_mm512_permutex2var_epi32(u.x, second.load(), v.x)};
    u = lower;
  }
  static void split(Vector& u, Vector& v) { permute(u, v, kLower, kUpper); }
  static void merge(Vector& u, Vector& v) { permute(u, v, kFirst, kSecond); }
  static Vector twiddles(const std::uint32_t* w) {
    return {_mm512_permutexvar_epi32(kGroups.load(), load(w).x)};
  }
};

}  // namespace
}  // namespace nescio::rlwe

#include "rlwe/coefficients_impl.h"
#include "rlwe/ntt_impl.h"

namespace nescio::rlwe::avx512 {

NESCIO_DEFINE_RLWE_KERNELS

}  // namespace nescio::rlwe::avx512
