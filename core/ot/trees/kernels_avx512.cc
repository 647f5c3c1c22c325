// Compiled for AVX-512 and VAES. Includes nothing that could leave shared code behind.
#include <immintrin.h>

#include "ot/trees/kernels.h"
#include "prg/aes128_avx512_impl.h"

namespace nescio::ot::avx512 {
namespace {

namespace aes = prg::aes128::avx512;
using aes::first_blocks;
using aes::kRegisters;

/// Returns x; the compiler cannot see how it was computed.
inline __m512i opaque(__m512i x) {
  asm("" : "+v"(x));
  return x;
}

/// Stores a blend with a full store. The compiler would merge blend and store into a masked store,
/// which does not write where the mask is zero: its time, and which pages become dirty, would
/// reveal the mask.
inline void store_blend(Block* to, __m512i x) { _mm512_storeu_si512(to, opaque(x)); }

/// A pair in registers, and the distance from the current register of nodes to its position.
struct PairBlend {
  __m512i distance, nodes;

  explicit PairBlend(const Pair& pair)
      : distance(_mm512_sub_epi64(_mm512_set1_epi64(static_cast<long long>(pair.index)),
                                  _mm512_set_epi64(1, 1, 1, 1, 0, 0, 0, 0))),
        nodes(_mm512_broadcast_i64x4(
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(pair.nodes)))) {}

  /// Returns `four`, the nodes of pairs 2k and 2k + 1 from the current position on, with the pair
  /// stored if it is one of them.
  __m512i operator()(int k, __m512i four) const {
    const __mmask8 here = _mm512_cmpeq_epi64_mask(distance, _mm512_set1_epi64(2 * k));
    return _mm512_mask_mov_epi64(four, here, nodes);
  }

  void advance(int registers) {
    distance = _mm512_sub_epi64(distance, _mm512_set1_epi64(2 * registers));
  }
};

/// Turns nodes x into their left and right children, `count` registers of each.
template <int count, bool last>
inline void hash_registers(const aes::Keys& keys, __m512i* x, __m512i* left, __m512i* right) {
  for (int i = 0; i < count; ++i) left[i] = aes::sigma(x[i]);
  aes::encrypt_registers<count>(keys, left);
  // sigma(x) is computed again: to keep the first result would need more registers than there are.
  for (int i = 0; i < count; ++i) x[i] = opaque(x[i]);
  for (int i = 0; i < count; ++i) left[i] = _mm512_xor_si512(left[i], aes::sigma(x[i]));
  for (int i = 0; i < count; ++i) right[i] = _mm512_xor_si512(left[i], x[i]);
}

/// The children of nodes 0 and 1 (`upper` = 0), or 2 and 3, of a register, in order.
template <int upper>
inline __m512i interleave(__m512i left, __m512i right) {
  constexpr long long k = 4 * upper;
  return _mm512_permutex2var_epi64(
      left, _mm512_set_epi64(k + 11, k + 10, k + 3, k + 2, k + 9, k + 8, k + 1, k), right);
}

template <bool last>
inline __m512i finish_child(__m512i child) {
  if constexpr (!last) return child;
  return _mm512_and_si512(child, _mm512_set_epi64(-1, -2, -1, -2, -1, -2, -1, -2));
}

inline Block xor_of_blocks(__m512i x) {
  const __m256i half = _mm256_xor_si256(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
  const __m128i total =
      _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
  Block block;
  _mm_store_si128(reinterpret_cast<__m128i*>(&block), total);
  return block;
}

template <bool last, bool with_pair>
inline Block expand_nodes(const RoundKeys& round_keys, const Block* nodes, std::size_t n,
                          const Pair& pair, Block* children) {
  const aes::Keys keys = aes::load_keys(round_keys);
  PairBlend blend(pair);
  __m512i sum = _mm512_setzero_si512();
  std::size_t i = 0;
  for (; i + 4 * kRegisters <= n; i += 4 * kRegisters) {
    __m512i x[kRegisters], left[kRegisters], right[kRegisters];
    for (int k = 0; k < kRegisters; ++k) {
      x[k] = _mm512_loadu_si512(nodes + i + 4 * k);
      if (with_pair) x[k] = blend(k, x[k]);
    }
    blend.advance(kRegisters);
    hash_registers<kRegisters, last>(keys, x, left, right);
    for (std::size_t k = 0; k < kRegisters; ++k) {
      sum = _mm512_xor_si512(sum, left[k]);
      Block* out = children + 2 * (i + 4 * k);
      _mm512_storeu_si512(out, finish_child<last>(interleave<0>(left[k], right[k])));
      _mm512_storeu_si512(out + 4, finish_child<last>(interleave<1>(left[k], right[k])));
    }
  }
  for (; i < n; i += 4) {
    const __mmask8 mask = first_blocks(n - i);
    __m512i x = _mm512_maskz_loadu_epi64(mask, nodes + i), left, right;
    if (with_pair) x = blend(0, x);
    blend.advance(1);
    hash_registers<1, last>(keys, &x, &left, &right);
    sum = _mm512_mask_xor_epi64(sum, mask, sum, left);
    const std::size_t written = 2 * (n - i);
    Block* out = children + 2 * i;
    _mm512_mask_storeu_epi64(out, first_blocks(written),
                             finish_child<last>(interleave<0>(left, right)));
    if (written > 4) {
      _mm512_mask_storeu_epi64(out + 4, first_blocks(written - 4),
                               finish_child<last>(interleave<1>(left, right)));
    }
  }
  return xor_of_blocks(sum);
}

template <bool last>
Block expand(const RoundKeys& keys, const Block* nodes, std::size_t n, Block* children) {
  return expand_nodes<last, false>(keys, nodes, n, {}, children);
}

template <bool last>
Block expand_with_pair(const RoundKeys& keys, const Block* nodes, std::size_t n, const Pair& pair,
                       Block* children) {
  return expand_nodes<last, true>(keys, nodes, n, pair, children);
}

void store_pair(Block* nodes, std::size_t n, const Pair& pair) {
  PairBlend blend(pair);
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4, blend.advance(1)) {
    store_blend(nodes + i, blend(0, _mm512_loadu_si512(nodes + i)));
  }
  if (i < n) {
    const __mmask8 mask = first_blocks(n - i);
    const __m512i x = _mm512_maskz_loadu_epi64(mask, nodes + i);
    _mm512_mask_storeu_epi64(nodes + i, mask, opaque(blend(0, x)));
  }
}

void store_part(Block* blocks, std::size_t parts, std::size_t n, std::uint64_t place,
                const Block* from) {
  for (std::size_t part = 0; part < parts; ++part, blocks += n) {
    const auto here = static_cast<__mmask8>(-static_cast<int>(equal_bit(part, place)));
    for (std::size_t i = 0; i < n; i += 4) {
      const __m512i old = opaque(_mm512_loadu_si512(blocks + i));
      const __m512i put = opaque(_mm512_loadu_si512(from + i));
      store_blend(blocks + i, _mm512_mask_mov_epi64(old, here, put));
    }
  }
}

}  // namespace

const TreeKernels kTreeKernels = {expand<false>,          expand<true>, expand_with_pair<false>,
                                  expand_with_pair<true>, store_pair,   store_part};

}  // namespace nescio::ot::avx512
