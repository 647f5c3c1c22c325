// Compiled for AVX2 and AES-NI. Must not define functions that other tiers share (scripts/check_tiers.py).
#include <immintrin.h>

#include "prg/aes128.h"
#include "prg/aes128_avx2_impl.h"

namespace nescio::prg::aes128::avx2 {
namespace {

/// Returns all ones if the control bit is set, else zeros.
inline __m128i control_mask(__m128i s) {
  return _mm_srai_epi32(_mm_slli_epi32(_mm_shuffle_epi32(s, 0), 31), 31);
}

/// F(sigma(node) ^ (tweak + j)), corrected, for j below `width` and `count` nodes from `first` on.
template <int width>
inline void hash_nodes(const Keys& keys, const Block* nodes, std::size_t first, int count,
                       int tweak, Corrections corrections, Block* out) {
  constexpr int kNodes = kLanes / width;
  __m128i in[kLanes], x[kLanes], add[kLanes];
  for (int i = 0; i < kNodes; ++i) {
    const std::size_t own = first + static_cast<std::size_t>(i < count ? i : 0);
    const __m128i node = load(nodes + own);
    const __m128i base = sigma(node), mask = control_mask(node);
    const Block* correction = corrections.of(own, width);
    for (int j = 0; j < width; ++j) {
      x[width * i + j] = in[width * i + j] = _mm_xor_si128(base, _mm_cvtsi32_si128(tweak + j));
      add[width * i + j] = _mm_and_si128(mask, load(correction + j));
    }
  }
  encrypt_lanes(keys, x);
  for (int k = 0; k < kLanes; ++k) {
    if (k >= width * count) break;
    store(out + width * first + k, _mm_xor_si128(x[k], _mm_xor_si128(in[k], add[k])));
  }
}

template <int width>
inline void hash_all(const Block* nodes, std::size_t n, int tweak, Corrections corrections,
                     Block* out) {
  constexpr std::size_t kNodes = kLanes / width;
  const Keys keys = load_keys(fixed_round_keys());
  std::size_t i = 0;
  for (; i + kNodes <= n; i += kNodes) {
    hash_nodes<width>(keys, nodes, i, kNodes, tweak, corrections, out);
  }
  if (i < n) hash_nodes<width>(keys, nodes, i, static_cast<int>(n - i), tweak, corrections, out);
}

/// Returns the next round key (FIPS 197, section 5.2). The substituted word is in all four columns, so
/// ShiftRows has no effect, and the last round of AES is SubBytes and an XOR.
inline __m128i next_round_key(__m128i key, __m128i constant) {
  const __m128i rotated = _mm_shuffle_epi8(key, _mm_set1_epi32(0x0C0F0E0D));
  const __m128i word = _mm_aesenclast_si128(rotated, constant);
  key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
  key = _mm_xor_si128(key, _mm_slli_si128(key, 8));
  return _mm_xor_si128(key, word);
}

}  // namespace

void encrypt(const RoundKeys& round_keys, const Block* in, std::size_t n, Block* out) {
  const Keys keys = load_keys(round_keys);
  for (std::size_t i = 0; i < n; i += kLanes) {
    __m128i x[kLanes];
    load_lanes(in + i, n - i, x);
    encrypt_lanes(keys, x);
    store_lanes(out + i, n - i, x);
  }
}

void count(const RoundKeys& round_keys, std::uint64_t first, std::size_t n, Block* out) {
  const Keys keys = load_keys(round_keys);
  for (std::size_t i = 0; i < n; i += kLanes) {
    __m128i x[kLanes];
    for (std::size_t k = 0; k < kLanes; ++k) {
      x[k] = _mm_set_epi64x(0, static_cast<long long>(first + i + k));
    }
    encrypt_lanes(keys, x);
    store_lanes(out + i, n - i, x);
  }
}

void expand_keys(Block base, std::uint64_t first, std::size_t n, RoundKeys* out) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto number = static_cast<long long>(first + i);
    __m128i key = _mm_xor_si128(load(&base), _mm_set_epi64x(0, number));
    for (std::size_t round = 0; round < 10; ++round) {
      store(&out[i].key[round], key);
      key = next_round_key(key, _mm_set1_epi32(kRoundConstants[round]));
    }
    store(&out[i].key[10], key);
  }
}

void expand(const Block* parents, std::size_t n, Corrections corrections, Block* out) {
  hash_all<2>(parents, n, 0, corrections, out);
}

void leaves(const Block* nodes, std::size_t n, Corrections corrections, Block* out) {
  hash_all<4>(nodes, n, static_cast<int>(kFirstLeafTweak), corrections, out);
}

}  // namespace nescio::prg::aes128::avx2
