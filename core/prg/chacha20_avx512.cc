// Compiled for AVX-512. Includes nothing that could leave shared code behind.
#include <immintrin.h>

#include "prg/chacha20.h"

namespace nescio::prg::chacha20::avx512 {
namespace {

// Sixteen nodes at once: register w holds word w of each. Nodes are loaded four to a register, and
// a 4 x 4 transposition of words inside each 128-bit quarter makes words of nodes and back, so lane
// 4q + e of a word register belongs to node 4e + q.
constexpr std::size_t kNodes = 16;

template <int a, int b, int c, int d>
inline void quarter_round(__m512i* x) {
  x[a] = _mm512_add_epi32(x[a], x[b]);
  x[d] = _mm512_rol_epi32(_mm512_xor_si512(x[d], x[a]), 16);
  x[c] = _mm512_add_epi32(x[c], x[d]);
  x[b] = _mm512_rol_epi32(_mm512_xor_si512(x[b], x[c]), 12);
  x[a] = _mm512_add_epi32(x[a], x[b]);
  x[d] = _mm512_rol_epi32(_mm512_xor_si512(x[d], x[a]), 8);
  x[c] = _mm512_add_epi32(x[c], x[d]);
  x[b] = _mm512_rol_epi32(_mm512_xor_si512(x[b], x[c]), 7);
}

inline void rounds(__m512i* x) {
  for (int round = 0; round < 20; round += 2) {
    quarter_round<0, 4, 8, 12>(x);
    quarter_round<1, 5, 9, 13>(x);
    quarter_round<2, 6, 10, 14>(x);
    quarter_round<3, 7, 11, 15>(x);
    quarter_round<0, 5, 10, 15>(x);
    quarter_round<1, 6, 11, 12>(x);
    quarter_round<2, 7, 8, 13>(x);
    quarter_round<3, 4, 9, 14>(x);
  }
}

/// Transposes the 4 x 4 words of each 128-bit quarter of four registers.
inline void transpose_words(__m512i* x) {
  const __m512i low01 = _mm512_unpacklo_epi32(x[0], x[1]),
                low23 = _mm512_unpacklo_epi32(x[2], x[3]);
  const __m512i high01 = _mm512_unpackhi_epi32(x[0], x[1]);
  const __m512i high23 = _mm512_unpackhi_epi32(x[2], x[3]);
  x[0] = _mm512_unpacklo_epi64(low01, low23);
  x[1] = _mm512_unpackhi_epi64(low01, low23);
  x[2] = _mm512_unpacklo_epi64(high01, high23);
  x[3] = _mm512_unpackhi_epi64(high01, high23);
}

/// Transposes the 4 x 4 matrix of 128-bit quarters of four registers.
inline void transpose_quarters(__m512i* x) {
  const __m512i low01 = _mm512_shuffle_i64x2(x[0], x[1], 0x44);
  const __m512i low23 = _mm512_shuffle_i64x2(x[2], x[3], 0x44);
  const __m512i high01 = _mm512_shuffle_i64x2(x[0], x[1], 0xEE);
  const __m512i high23 = _mm512_shuffle_i64x2(x[2], x[3], 0xEE);
  x[0] = _mm512_shuffle_i64x2(low01, low23, 0x88);
  x[1] = _mm512_shuffle_i64x2(low01, low23, 0xDD);
  x[2] = _mm512_shuffle_i64x2(high01, high23, 0x88);
  x[3] = _mm512_shuffle_i64x2(high01, high23, 0xDD);
}

/// All ones if the control bit of the node is set.
inline __m512i control_mask(const Block* node) {
  const __m512i low = _mm512_set1_epi32(static_cast<int>(node->lo));
  return _mm512_srai_epi32(_mm512_slli_epi32(low, 31), 31);
}

/// Fills x with the keystream words of the sixteen keys whose words are k[0..3].
inline void keystream(const __m512i* k, std::uint32_t counter, __m512i* x) {
  for (int w = 0; w < 4; ++w) {
    x[w] = _mm512_set1_epi32(static_cast<int>(kConstants[w]));
    x[4 + w] = x[8 + w] = k[w];
    x[12 + w] = _mm512_setzero_si512();
  }
  x[12] = _mm512_set1_epi32(static_cast<int>(counter));
  rounds(x);
  for (int w = 0; w < 4; ++w) {
    x[w] = _mm512_add_epi32(x[w], _mm512_set1_epi32(static_cast<int>(kConstants[w])));
    x[4 + w] = _mm512_add_epi32(x[4 + w], k[w]);
    x[8 + w] = _mm512_add_epi32(x[8 + w], k[w]);
  }
  x[12] = _mm512_add_epi32(x[12], _mm512_set1_epi32(static_cast<int>(counter)));
}

/// The 64 bytes of each of sixteen nodes, of which the first is number `first` of its run.
inline void sixteen(const Block* nodes, std::uint32_t counter, Corrections corrections,
                    std::size_t first, Block* out) {
  __m512i k[4], x[16];
  for (int e = 0; e < 4; ++e) k[e] = _mm512_loadu_si512(nodes + 4 * e);
  transpose_words(k);
  keystream(k, counter, x);
  // After this, quarter q of x[4g + e] is block g of node 4e + q.
  for (int g = 0; g < 4; ++g) transpose_words(x + 4 * g);
  for (int e = 0; e < 4; ++e) {
    __m512i node[4] = {x[e], x[4 + e], x[8 + e], x[12 + e]};
    transpose_quarters(node);
    for (int q = 0; q < 4; ++q) {
      const std::size_t i = static_cast<std::size_t>(4 * e + q);
      const __m512i correction = _mm512_loadu_si512(corrections.of(first + i, 4));
      const __m512i sum =
          _mm512_ternarylogic_epi64(node[q], control_mask(nodes + i), correction, 0x78);
      _mm512_storeu_si512(out + 4 * i, sum);
    }
  }
}

void blocks(const Block* nodes, std::size_t n, std::uint32_t counter, Corrections corrections,
            Block* out) {
  std::size_t i = 0;
  for (; i + kNodes <= n; i += kNodes) {
    sixteen(nodes + i, counter, corrections, i, out + 4 * i);
  }
  if (i == n) return;
  alignas(64) Block last[kNodes], result[4 * kNodes], correction[4 * kNodes];
  for (std::size_t k = 0; k < kNodes; ++k) {
    const std::size_t own = i + k < n ? i + k : n - 1;
    last[k] = nodes[own];
    for (std::size_t j = 0; j < 4; ++j) correction[4 * k + j] = corrections.of(own, 4)[j];
  }
  sixteen(last, counter, {correction, 0}, 0, result);
  for (std::size_t k = 4 * i; k < 4 * n; ++k) out[k] = result[k - 4 * i];
}

}  // namespace

void expand(const Block* parents, std::size_t n, Corrections corrections, Block* out) {
  blocks(parents, n, kChildrenCounter, corrections, out);
}

void leaves(const Block* nodes, std::size_t n, Corrections corrections, Block* out) {
  blocks(nodes, n, kLeafCounter, corrections, out);
}

}  // namespace nescio::prg::chacha20::avx512
