// Compiled for AVX2 and AES-NI. Includes nothing that could leave shared code behind.
#include <immintrin.h>

#include "ot/trees/kernels.h"
#include "prg/aes128_avx2_impl.h"

namespace nescio::ot::avx2 {
namespace {

namespace aes = prg::aes128::avx2;
using aes::kLanes;
using aes::load;
using aes::store;

/// A pair in registers.
struct PairBlend {
  __m128i place, nodes[2];

  explicit PairBlend(const Pair& pair)
      : place(_mm_set1_epi64x(static_cast<long long>(pair.index))),
        nodes{load(pair.nodes), load(pair.nodes + 1)} {}

  /// `node`, or the node of the pair if i is its position.
  __m128i operator()(std::size_t i, __m128i node) const {
    const __m128i number = _mm_set1_epi64x(static_cast<long long>(i / 2));
    return _mm_blendv_epi8(node, nodes[i % 2], _mm_cmpeq_epi64(number, place));
  }
};

/// Writes the children of `count` nodes x and adds the left ones to the sum.
template <bool last>
inline void expand_lanes(const aes::Keys& keys, const __m128i* x, int count, Block* children,
                         __m128i* sum) {
  const __m128i keep = _mm_set_epi64x(-1, last ? -2 : -1);
  __m128i left[kLanes];
  for (int i = 0; i < kLanes; ++i) left[i] = aes::sigma(x[i]);
  aes::encrypt_lanes(keys, left);
  for (int i = 0; i < kLanes; ++i) {
    if (i >= count) break;
    left[i] = _mm_xor_si128(left[i], aes::sigma(x[i]));
    *sum = _mm_xor_si128(*sum, left[i]);
    const __m128i right = _mm_xor_si128(left[i], x[i]);
    store(children + 2 * i, last ? _mm_and_si128(left[i], keep) : left[i]);
    store(children + 2 * i + 1, last ? _mm_and_si128(right, keep) : right);
  }
}

template <bool last, bool with_pair>
inline Block expand_nodes(const RoundKeys& round_keys, const Block* nodes, std::size_t n,
                          const Pair& pair, Block* children) {
  const aes::Keys keys = aes::load_keys(round_keys);
  const PairBlend blend(pair);
  __m128i sum = _mm_setzero_si128();
  for (std::size_t i = 0; i < n; i += kLanes) {
    const std::size_t left = n - i;
    const int count = left < kLanes ? static_cast<int>(left) : kLanes;
    __m128i x[kLanes] = {};
    for (int k = 0; k < kLanes; ++k) {
      if (k < count) x[k] = load(nodes + i + k);
      if (with_pair) x[k] = blend(i + static_cast<std::size_t>(k), x[k]);
    }
    expand_lanes<last>(keys, x, count, children + 2 * i, &sum);
  }
  Block total;
  store(&total, sum);
  return total;
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
  const PairBlend blend(pair);
  for (std::size_t i = 0; i < n; ++i) store(nodes + i, blend(i, load(nodes + i)));
}

void store_part(Block* blocks, std::size_t parts, std::size_t n, std::uint64_t place,
                const Block* from) {
  for (std::size_t part = 0; part < parts; ++part, blocks += n) {
    const __m128i here = _mm_set1_epi64x(-static_cast<long long>(equal_bit(part, place)));
    for (std::size_t i = 0; i < n; ++i) {
      store(blocks + i, _mm_blendv_epi8(load(blocks + i), load(from + i), here));
    }
  }
}

}  // namespace

const TreeKernels kTreeKernels = {expand<false>,          expand<true>, expand_with_pair<false>,
                                  expand_with_pair<true>, store_pair,   store_part};

}  // namespace nescio::ot::avx2
