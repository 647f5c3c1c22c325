// Compiled for AVX-512 and VAES. Must not define functions that other tiers share (scripts/check_tiers.py).
#include <immintrin.h>

#include "prg/aes128.h"
#include "prg/aes128_avx512_impl.h"

namespace nescio::prg::aes128::avx512 {
namespace {

/// Returns all ones in the blocks whose control bit is set.
inline __m512i control_mask(__m512i s) {
  return _mm512_srai_epi32(_mm512_slli_epi32(_mm512_shuffle_epi32(s, _MM_PERM_AAAA), 31), 31);
}

/// F(sigma(s) ^ tweak) ^ t * correction for `count` registers of nodes s, in place.
template <int count>
inline void hash_registers(const Keys& keys, __m512i tweak, const __m512i* correction, __m512i* s) {
  __m512i x[count];
  for (int i = 0; i < count; ++i) {
    x[i] = _mm512_xor_si512(sigma(s[i]), tweak);
    // s becomes the term added after the permutation: x ^ (mask & correction).
    s[i] = _mm512_ternarylogic_epi64(x[i], control_mask(s[i]), correction[i], 0x78);
  }
  encrypt_registers<count>(keys, x);
  for (int i = 0; i < count; ++i) s[i] = _mm512_xor_si512(s[i], x[i]);
}

/// Loads the first 4 / width of `n` nodes, each repeated `width` times.
template <int width>
inline __m512i spread(const Block* nodes, std::size_t n) {
  constexpr std::size_t kNodes = 4 / width;
  const __m512i in = _mm512_maskz_loadu_epi64(first_blocks(n < kNodes ? n : kNodes), nodes);
  if constexpr (width == 2) {
    return _mm512_shuffle_i64x2(in, in, 0x50);  // 0 0 1 1
  } else {
    return _mm512_shuffle_i64x2(in, in, 0x00);  // 0 0 0 0
  }
}

/// Loads the corrections of a register of results, whose first node is i of n.
template <int width>
inline __m512i spread_corrections(Corrections corrections, std::size_t i, std::size_t n) {
  const Block* own = corrections.of(i, width);
  if constexpr (width == 4) {
    return _mm512_loadu_si512(own);
  } else if (corrections.group_bits == 0) {
    return _mm512_maskz_loadu_epi64(first_blocks(2 * (n - i)), own);
  } else {
    return _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(own)));
  }
}

template <int width>
inline void hash_all(__m512i tweak, Corrections corrections, const Block* nodes, std::size_t n,
                     Block* out) {
  constexpr std::size_t kNodes = 4 / width;
  const Keys keys = load_keys(fixed_round_keys());
  std::size_t i = 0;
  for (; i + kRegisters * kNodes <= n; i += kRegisters * kNodes) {
    __m512i s[kRegisters], correction[kRegisters];
    for (int k = 0; k < kRegisters; ++k) {
      s[k] = spread<width>(nodes + i + kNodes * k, kNodes);
      correction[k] = spread_corrections<width>(corrections, i + kNodes * k, n);
    }
    hash_registers<kRegisters>(keys, tweak, correction, s);
    for (int k = 0; k < kRegisters; ++k) _mm512_storeu_si512(out + width * i + 4 * k, s[k]);
  }
  for (; i < n; i += kNodes) {
    __m512i s = spread<width>(nodes + i, n - i);
    const __m512i correction = spread_corrections<width>(corrections, i, n);
    hash_registers<1>(keys, tweak, &correction, &s);
    _mm512_mask_storeu_epi64(out + width * i, first_blocks(width * (n - i)), s);
  }
}

/// Returns the next round keys of four keys (FIPS 197, section 5.2). The substituted word is in all four
/// columns, so ShiftRows has no effect, and the last round of AES is SubBytes and an XOR.
inline __m512i next_round_keys(__m512i keys, __m512i constant) {
  const __m512i rotated = _mm512_shuffle_epi8(keys, _mm512_set1_epi32(0x0C0F0E0D));
  const __m512i word = _mm512_aesenclast_epi128(rotated, constant);
  keys = _mm512_xor_si512(keys, _mm512_bslli_epi128(keys, 4));
  return _mm512_ternarylogic_epi64(keys, _mm512_bslli_epi128(keys, 8), word, 0x96);
}

/// Stores block k of a register.
template <int k>
inline void store_block(Block* to, __m512i x) {
  _mm_store_si128(reinterpret_cast<__m128i*>(to), _mm512_extracti32x4_epi32(x, k));
}

}  // namespace

void encrypt(const RoundKeys& round_keys, const Block* in, std::size_t n, Block* out) {
  const Keys keys = load_keys(round_keys);
  for (std::size_t i = 0; i < n; i += 4) {
    __m512i x = _mm512_maskz_loadu_epi64(first_blocks(n - i), in + i);
    encrypt_registers<1>(keys, &x);
    _mm512_mask_storeu_epi64(out + i, first_blocks(n - i), x);
  }
}

void count(const RoundKeys& round_keys, std::uint64_t first, std::size_t n, Block* out) {
  const Keys keys = load_keys(round_keys);
  __m512i counters = first_counters(first);
  std::size_t i = 0;
  for (; i + 4 * kRegisters <= n; i += 4 * kRegisters) {
    __m512i x[kRegisters];
    for (int k = 0; k < kRegisters; ++k) x[k] = add_to_counters(counters, 4 * k);
    counters = add_to_counters(counters, 4 * kRegisters);
    encrypt_registers<kRegisters>(keys, x);
    for (int k = 0; k < kRegisters; ++k) _mm512_storeu_si512(out + i + 4 * k, x[k]);
  }
  for (; i < n; i += 4) {
    __m512i x = counters;
    counters = add_to_counters(counters, 4);
    encrypt_registers<1>(keys, &x);
    _mm512_mask_storeu_epi64(out + i, first_blocks(n - i), x);
  }
}

void expand_keys(Block base, std::uint64_t first, std::size_t n, RoundKeys* out) {
  const __m512i bases = _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<__m128i*>(&base)));
  for (std::size_t i = 0; i < n; i += 4) {
    __m512i keys = _mm512_xor_si512(bases, first_counters(first + i));
    const std::size_t left = n - i;
    for (std::size_t round = 0; round < 11; ++round) {
      store_block<0>(&out[i].key[round], keys);
      if (left > 1) store_block<1>(&out[i + 1].key[round], keys);
      if (left > 2) store_block<2>(&out[i + 2].key[round], keys);
      if (left > 3) store_block<3>(&out[i + 3].key[round], keys);
      if (round < 10) keys = next_round_keys(keys, _mm512_set1_epi32(kRoundConstants[round]));
    }
  }
}

void expand(const Block* parents, std::size_t n, Corrections corrections, Block* out) {
  hash_all<2>(_mm512_set_epi64(0, 1, 0, 0, 0, 1, 0, 0), corrections, parents, n, out);
}

void leaves(const Block* nodes, std::size_t n, Corrections corrections, Block* out) {
  constexpr long long t = kFirstLeafTweak;
  const __m512i tweak = _mm512_set_epi64(0, t + 3, 0, t + 2, 0, t + 1, 0, t);
  hash_all<4>(tweak, corrections, nodes, n, out);
}

}  // namespace nescio::prg::aes128::avx512
