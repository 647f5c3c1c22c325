// Compiled for AVX-512 and GFNI. Includes nothing that could leave shared code behind.
#include <immintrin.h>

#include <cstring>
#include <type_traits>

#include "ot/codes/additive_fft.h"

namespace nescio::ot {
namespace {

struct Vector {
  static constexpr std::size_t kBlocks = 4;
  static constexpr bool kFastProduct = true;
  __m512i v;

  static Vector load(const Block* from) { return {_mm512_loadu_si512(from)}; }
  void store(Block* to) const { _mm512_storeu_si512(to, v); }
  static Vector broadcast(const Block& block) {
    return {_mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(&block)))};
  }
  static Vector broadcast(std::uint32_t word) {
    return {_mm512_set1_epi32(static_cast<int>(word))};
  }
  friend Vector operator^(Vector a, Vector b) { return {_mm512_xor_si512(a.v, b.v)}; }
};

/// Applies the same byte shuffle to every element; the index 0x80 gives zero.
inline Vector shuffle_bytes(Vector x, unsigned b0, unsigned b1, unsigned b2, unsigned b3) {
  const unsigned word = b0 | b1 << 8 | b2 << 16 | b3 << 24;
  const __m512i base = _mm512_broadcast_i32x4(_mm_set_epi32(0x0C0C0C0C, 0x08080808, 0x04040404, 0));
  return {
      _mm512_shuffle_epi8(x.v, _mm512_or_si512(_mm512_set1_epi32(static_cast<int>(word)), base))};
}

inline Vector multiply_bytes(Vector a, Vector b) { return {_mm512_gf2p8mul_epi8(a.v, b.v)}; }

/// Moves byte i ^ s of each element to byte i.
template <int s>
inline Vector swap_bytes(Vector x) {
  return shuffle_bytes(x, s, 1 ^ s, 2 ^ s, 3 ^ s);
}

/// Broadcasts element `lane` of each block to its four elements.
inline Vector broadcast_element(Vector x, unsigned lane) {
  const auto bytes = static_cast<int>(0x03020100 + lane * 0x04040404);
  return {_mm512_shuffle_epi8(x.v, _mm512_set1_epi32(bytes))};
}

/// Transposes four registers of four blocks as a 4 x 4 matrix of blocks.
inline void transpose(Vector* x) {
  const __m512i a = _mm512_shuffle_i64x2(x[0].v, x[1].v, 0x44);  // 00 01 10 11
  const __m512i b = _mm512_shuffle_i64x2(x[0].v, x[1].v, 0xEE);  // 02 03 12 13
  const __m512i c = _mm512_shuffle_i64x2(x[2].v, x[3].v, 0x44);
  const __m512i d = _mm512_shuffle_i64x2(x[2].v, x[3].v, 0xEE);
  x[0].v = _mm512_shuffle_i64x2(a, c, 0x88);
  x[1].v = _mm512_shuffle_i64x2(a, c, 0xDD);
  x[2].v = _mm512_shuffle_i64x2(b, d, 0x88);
  x[3].v = _mm512_shuffle_i64x2(b, d, 0xDD);
}

}  // namespace
}  // namespace nescio::ot

#include "ot/codes/additive_fft_impl.h"

namespace nescio::ot::avx512 {
const AdditiveFft kAdditiveFft = kOwnFft;
}  // namespace nescio::ot::avx512
