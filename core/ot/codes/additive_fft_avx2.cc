// Compiled for AVX2. Includes nothing that could leave shared code behind.
#include <immintrin.h>

#include <cstring>
#include <type_traits>

#include "ot/codes/additive_fft.h"

namespace nescio::ot {
namespace {

struct Vector {
  static constexpr std::size_t kBlocks = 2;
  static constexpr bool kFastProduct = false;
  __m256i v;

  static Vector load(const Block* from) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))};
  }
  void store(Block* to) const { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v); }
  static Vector broadcast(const Block& block) {
    return {_mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(&block)))};
  }
  static Vector broadcast(std::uint32_t word) {
    return {_mm256_set1_epi32(static_cast<int>(word))};
  }
  friend Vector operator^(Vector a, Vector b) { return {_mm256_xor_si256(a.v, b.v)}; }
};

/// Applies the same byte shuffle to every element; the index 0x80 gives zero.
inline Vector shuffle_bytes(Vector x, unsigned b0, unsigned b1, unsigned b2, unsigned b3) {
  const unsigned word = b0 | b1 << 8 | b2 << 16 | b3 << 24;
  const __m256i base =
      _mm256_broadcastsi128_si256(_mm_set_epi32(0x0C0C0C0C, 0x08080808, 0x04040404, 0));
  return {
      _mm256_shuffle_epi8(x.v, _mm256_or_si256(_mm256_set1_epi32(static_cast<int>(word)), base))};
}

/// The products of bytes in GF(2^8), processing the bits of k from the highest down: each step
/// doubles the sum and k, and adds x where the highest bit of k is set.
inline Vector multiply_bytes(Vector x, Vector k) {
  const __m256i zero = _mm256_setzero_si256(), modulus = _mm256_set1_epi8(0x1B);
  __m256i sum = _mm256_blendv_epi8(zero, x.v, k.v);
#pragma GCC unroll 7
  for (int bit = 0; bit < 7; ++bit) {
    k.v = _mm256_add_epi8(k.v, k.v);
    const __m256i carry = _mm256_blendv_epi8(zero, modulus, sum);
    sum = _mm256_xor_si256(_mm256_add_epi8(sum, sum), carry);
    sum = _mm256_xor_si256(sum, _mm256_blendv_epi8(zero, x.v, k.v));
  }
  return {sum};
}

/// Moves byte i ^ s of each element to byte i.
template <int s>
inline Vector swap_bytes(Vector x) {
  return shuffle_bytes(x, s, 1 ^ s, 2 ^ s, 3 ^ s);
}

/// Broadcasts element `lane` of each block to its four elements.
inline Vector broadcast_element(Vector x, unsigned lane) {
  const auto bytes = static_cast<int>(0x03020100 + lane * 0x04040404);
  return {_mm256_shuffle_epi8(x.v, _mm256_set1_epi32(bytes))};
}

/// Transposes two registers of two blocks as a 2 x 2 matrix of blocks.
inline void transpose(Vector* x) {
  const __m256i a = _mm256_permute2x128_si256(x[0].v, x[1].v, 0x20);
  x[1].v = _mm256_permute2x128_si256(x[0].v, x[1].v, 0x31);
  x[0].v = a;
}

}  // namespace
}  // namespace nescio::ot

#include "ot/codes/additive_fft_impl.h"

namespace nescio::ot::avx2 {
const AdditiveFft kAdditiveFft = kOwnFft;
}  // namespace nescio::ot::avx2
