// Compiled for AVX2. Includes nothing that could leave shared code behind.
#include <immintrin.h>

#include "prg/chacha20.h"

namespace nescio::prg::chacha20::avx2 {
namespace {

// Eight nodes at once: register w holds word w of each. Nodes are loaded two to a register, and a
// 4 x 4 transposition of words inside each 128-bit half makes words of nodes and back, so lane
// 4q + e of a word register belongs to node 2e + q.
constexpr std::size_t kNodes = 8;

template <int bits>
inline __m256i rotate(__m256i x) {
  if constexpr (bits == 16) {
    return _mm256_shuffle_epi8(x, _mm256_set_epi64x(0x0d0c0f0e09080b0a, 0x0504070601000302,
                                                    0x0d0c0f0e09080b0a, 0x0504070601000302));
  } else if constexpr (bits == 8) {
    return _mm256_shuffle_epi8(x, _mm256_set_epi64x(0x0e0d0c0f0a09080b, 0x0605040702010003,
                                                    0x0e0d0c0f0a09080b, 0x0605040702010003));
  } else {
    return _mm256_or_si256(_mm256_slli_epi32(x, bits), _mm256_srli_epi32(x, 32 - bits));
  }
}

template <int a, int b, int c, int d>
inline void quarter_round(__m256i* x) {
  x[a] = _mm256_add_epi32(x[a], x[b]);
  x[d] = rotate<16>(_mm256_xor_si256(x[d], x[a]));
  x[c] = _mm256_add_epi32(x[c], x[d]);
  x[b] = rotate<12>(_mm256_xor_si256(x[b], x[c]));
  x[a] = _mm256_add_epi32(x[a], x[b]);
  x[d] = rotate<8>(_mm256_xor_si256(x[d], x[a]));
  x[c] = _mm256_add_epi32(x[c], x[d]);
  x[b] = rotate<7>(_mm256_xor_si256(x[b], x[c]));
}

inline void rounds(__m256i* x) {
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

/// Transposes the 4 x 4 words of each 128-bit half of four registers.
inline void transpose_words(__m256i* x) {
  const __m256i low01 = _mm256_unpacklo_epi32(x[0], x[1]),
                low23 = _mm256_unpacklo_epi32(x[2], x[3]);
  const __m256i high01 = _mm256_unpackhi_epi32(x[0], x[1]);
  const __m256i high23 = _mm256_unpackhi_epi32(x[2], x[3]);
  x[0] = _mm256_unpacklo_epi64(low01, low23);
  x[1] = _mm256_unpackhi_epi64(low01, low23);
  x[2] = _mm256_unpacklo_epi64(high01, high23);
  x[3] = _mm256_unpackhi_epi64(high01, high23);
}

/// All ones if the control bit of the node is set.
inline __m256i control_mask(const Block* node) {
  const __m256i low = _mm256_set1_epi32(static_cast<int>(node->lo));
  return _mm256_srai_epi32(_mm256_slli_epi32(low, 31), 31);
}

inline __m256i load(const Block* b) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b));
}

/// Fills x with the keystream words of the eight keys whose words are k[0..3].
inline void keystream(const __m256i* k, std::uint32_t counter, __m256i* x) {
  for (int w = 0; w < 4; ++w) {
    x[w] = _mm256_set1_epi32(static_cast<int>(kConstants[w]));
    x[4 + w] = x[8 + w] = k[w];
    x[12 + w] = _mm256_setzero_si256();
  }
  x[12] = _mm256_set1_epi32(static_cast<int>(counter));
  rounds(x);
  for (int w = 0; w < 4; ++w) {
    x[w] = _mm256_add_epi32(x[w], _mm256_set1_epi32(static_cast<int>(kConstants[w])));
    x[4 + w] = _mm256_add_epi32(x[4 + w], k[w]);
    x[8 + w] = _mm256_add_epi32(x[8 + w], k[w]);
  }
  x[12] = _mm256_add_epi32(x[12], _mm256_set1_epi32(static_cast<int>(counter)));
}

/// Writes the two halves of a node's 64 bytes, corrected.
inline void store_node(const Block* node, __m256i low, __m256i high, const Block* correction,
                       Block* out) {
  const __m256i mask = control_mask(node);
  auto* to = reinterpret_cast<__m256i*>(out);
  _mm256_storeu_si256(to, _mm256_xor_si256(low, _mm256_and_si256(mask, load(correction))));
  _mm256_storeu_si256(to + 1, _mm256_xor_si256(high, _mm256_and_si256(mask, load(correction + 2))));
}

/// The 64 bytes of each of eight nodes, of which the first is number `first` of its run.
inline void eight(const Block* nodes, std::uint32_t counter, Corrections corrections,
                  std::size_t first, Block* out) {
  __m256i k[4], x[16];
  for (int e = 0; e < 4; ++e) k[e] = load(nodes + 2 * e);
  transpose_words(k);
  keystream(k, counter, x);
  // After this, half q of x[4g + e] is block g of node 2e + q.
  for (int g = 0; g < 4; ++g) transpose_words(x + 4 * g);
  for (std::size_t e = 0; e < 4; ++e) {
    const std::size_t i = 2 * e;
    store_node(nodes + i, _mm256_permute2x128_si256(x[e], x[4 + e], 0x20),
               _mm256_permute2x128_si256(x[8 + e], x[12 + e], 0x20), corrections.of(first + i, 4),
               out + 4 * i);
    store_node(nodes + i + 1, _mm256_permute2x128_si256(x[e], x[4 + e], 0x31),
               _mm256_permute2x128_si256(x[8 + e], x[12 + e], 0x31),
               corrections.of(first + i + 1, 4), out + 4 * i + 4);
  }
}

void blocks(const Block* nodes, std::size_t n, std::uint32_t counter, Corrections corrections,
            Block* out) {
  std::size_t i = 0;
  for (; i + kNodes <= n; i += kNodes) eight(nodes + i, counter, corrections, i, out + 4 * i);
  if (i == n) return;
  alignas(64) Block last[kNodes], result[4 * kNodes], correction[4 * kNodes];
  for (std::size_t k = 0; k < kNodes; ++k) {
    const std::size_t own = i + k < n ? i + k : n - 1;
    last[k] = nodes[own];
    for (std::size_t j = 0; j < 4; ++j) correction[4 * k + j] = corrections.of(own, 4)[j];
  }
  eight(last, counter, {correction, 0}, 0, result);
  for (std::size_t k = 4 * i; k < 4 * n; ++k) out[k] = result[k - 4 * i];
}

}  // namespace

void expand(const Block* parents, std::size_t n, Corrections corrections, Block* out) {
  blocks(parents, n, kChildrenCounter, corrections, out);
}

void leaves(const Block* nodes, std::size_t n, Corrections corrections, Block* out) {
  blocks(nodes, n, kLeafCounter, corrections, out);
}

}  // namespace nescio::prg::chacha20::avx2
