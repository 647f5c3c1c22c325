// The body of cores*.cc: each tier's file includes it once and compiles it with its own flags. All
// of it is private to the file that includes it.
//
// A tier processes as many nodes at once as a register holds words, one per lane (base/lanes_impl.h).

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/lanes_impl.h"
#include "prg/aes128.h"
#include "prg/chacha.h"
#include "prg/cores.h"
#include "prg/highwayhash.h"
#include "prg/salsa20.h"
#include "prg/sha256.h"
#include "prg/siphash.h"

namespace nescio::prg {
namespace {

template <class Core>
constexpr std::size_t kNodes = kLanes<typename Core::Word>;

/// The output of a generator call: the children or the leaf of a node.
enum class Part { children, leaf };

template <class Core, Part part>
constexpr std::size_t kBlocks = part == Part::leaf ? 4 : 1 << Core::kRadixBits;

template <class Core, Part part, class W>
inline void generate(const W* node, W* out) {
  if constexpr (part == Part::leaf) {
    Core::leaf(node, out);
  } else {
    Core::children(node, out);
  }
}

#if defined(__AVX512F__)

/// Stores a node's 32 bytes, corrected.
inline void store(__m256i value, const Block* node, const Block* correction, Block* out) {
  const __m256i low = _mm256_set1_epi64x(static_cast<long long>(node->lo));
  const __m256i mask = _mm256_srai_epi64(_mm256_slli_epi64(low, 63), 63);
  const __m256i own = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(correction));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out),
                      _mm256_ternarylogic_epi64(value, mask, own, 0x78));
}

/// Stores a node's 64 bytes, corrected.
inline void store(__m512i value, const Block* node, const Block* correction, Block* out) {
  const __m512i low = _mm512_set1_epi64(static_cast<long long>(node->lo));
  const __m512i mask = _mm512_srai_epi64(_mm512_slli_epi64(low, 63), 63);
  _mm512_storeu_si512(out,
                      _mm512_ternarylogic_epi64(value, mask, _mm512_loadu_si512(correction), 0x78));
}

/// Block g of four nodes in x[g], for g below 2: stores the nodes.
inline void store_nodes(const Register (&x)[2], const Block* nodes, Corrections corrections,
                        std::size_t first, Block* out) {
  const Register even = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
  const Register odd = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
  const Register pairs[2] = {_mm512_permutex2var_epi64(x[0], even, x[1]),
                             _mm512_permutex2var_epi64(x[0], odd, x[1])};
  for (std::size_t p = 0; p < 2; ++p) {
    const std::size_t i = 2 * p;
    store(_mm512_castsi512_si256(pairs[p]), nodes + i, corrections.of(first + i, 2), out + 2 * i);
    store(_mm512_extracti64x4_epi64(pairs[p], 1), nodes + i + 1, corrections.of(first + i + 1, 2),
          out + 2 * i + 2);
  }
}

/// The same for g below 4.
inline void store_nodes(const Register (&x)[4], const Block* nodes, Corrections corrections,
                        std::size_t first, Block* out) {
  const Register low01 = _mm512_shuffle_i64x2(x[0], x[1], 0x44);
  const Register low23 = _mm512_shuffle_i64x2(x[2], x[3], 0x44);
  const Register high01 = _mm512_shuffle_i64x2(x[0], x[1], 0xEE);
  const Register high23 = _mm512_shuffle_i64x2(x[2], x[3], 0xEE);
  const Register node[4] = {
      _mm512_shuffle_i64x2(low01, low23, 0x88), _mm512_shuffle_i64x2(low01, low23, 0xDD),
      _mm512_shuffle_i64x2(high01, high23, 0x88), _mm512_shuffle_i64x2(high01, high23, 0xDD)};
  for (std::size_t i = 0; i < 4; ++i) {
    store(node[i], nodes + i, corrections.of(first + i, 4), out + 4 * i);
  }
}

#elif defined(__AVX2__)

/// Stores 32 bytes of a node, corrected.
inline void store(Register value, Register mask, const Block* correction, Block* out) {
  _mm256_storeu_si256(reinterpret_cast<Register*>(out),
                      _mm256_xor_si256(value, _mm256_and_si256(mask, load(correction))));
}

/// Block g of two nodes in x[g], for g below 2 or 4: stores the nodes.
template <std::size_t blocks>
inline void store_nodes(const Register (&x)[blocks], const Block* nodes, Corrections corrections,
                        std::size_t first, Block* out) {
  for (std::size_t i = 0; i < 2; ++i) {
    const Register low = _mm256_set1_epi32(static_cast<int>(nodes[i].lo));
    const Register mask = _mm256_srai_epi32(_mm256_slli_epi32(low, 31), 31);
    const Block* correction = corrections.of(first + i, blocks);
    for (std::size_t g = 0; g < blocks; g += 2) {
      const Register pair = i == 0 ? _mm256_permute2x128_si256(x[g], x[g + 1], 0x20)
                                   : _mm256_permute2x128_si256(x[g], x[g + 1], 0x31);
      store(pair, mask, correction + g, out + blocks * i + g);
    }
  }
}

#endif

#if defined(__AVX2__)

/// Writes the part of each of kNodes nodes; the first has index `first`, for its correction.
template <class Core, Part part>
inline void generate_lanes(const Block* nodes, Corrections corrections, std::size_t first,
                           Block* out) {
  using Word = typename Core::Word;
  using Words = typename Lanes<Word>::Words;
  constexpr std::size_t blocks = kBlocks<Core, part>, k = kBlockWords<Word>;
  constexpr std::size_t q = kRegisterBlocks;
  Words node[k], words[k * blocks];
  Register x[k * blocks];
  load_words<Word>(nodes, node);
  generate<Core, part>(node, words);
  for (std::size_t w = 0; w < k * blocks; ++w) x[w] = reinterpret_cast<Register>(words[w]);
  for (std::size_t g = 0; g < blocks; ++g) transpose<Word>(x + k * g);
  for (std::size_t e = 0; e < k; ++e) {
    Register own[blocks];
    for (std::size_t g = 0; g < blocks; ++g) own[g] = x[k * g + e];
    store_nodes(own, nodes + q * e, corrections, first + q * e, out + blocks * q * e);
  }
}

#else

/// Writes the part of one node, with index `first`.
template <class Core, Part part>
inline void generate_lanes(const Block* nodes, Corrections corrections, std::size_t first,
                           Block* out) {
  using Word = typename Core::Word;
  constexpr std::size_t blocks = kBlocks<Core, part>, k = kBlockWords<Word>;
  Word node[k], words[k * blocks];
  load_words<Word>(nodes, node);
  generate<Core, part>(node, words);
  Block own[blocks];
  std::memcpy(own, words, sizeof(own));
  const Block mask = block_mask(control_bit(*nodes));
  const Block* correction = corrections.of(first, blocks);
  for (std::size_t j = 0; j < blocks; ++j) out[j] = own[j] ^ (mask & correction[j]);
}

#endif

/// Writes the part of each of n nodes.
template <class Core, Part part>
void generate_all(const Block* nodes, std::size_t n, Corrections corrections, Block* out) {
  constexpr std::size_t lanes = kNodes<Core>, blocks = kBlocks<Core, part>;
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    generate_lanes<Core, part>(nodes + i, corrections, i, out + blocks * i);
  }
  if (i == n) return;
  alignas(64) Block last[lanes], result[blocks * lanes], correction[blocks * lanes];
  for (std::size_t l = 0; l < lanes; ++l) {
    const std::size_t own = i + l < n ? i + l : n - 1;
    last[l] = nodes[own];
    for (std::size_t j = 0; j < blocks; ++j) {
      correction[blocks * l + j] = corrections.of(own, blocks)[j];
    }
  }
  generate_lanes<Core, part>(last, {correction, 0}, 0, result);
  for (std::size_t j = blocks * i; j < blocks * n; ++j) out[j] = result[j - blocks * i];
}

}  // namespace

#define NESCIO_CORE_GENERATOR(name, ...)                    \
  {GeneratorId::name, #name, radix_bits(GeneratorId::name), \
   generate_all<__VA_ARGS__, Part::children>, generate_all<__VA_ARGS__, Part::leaf>}

/// Defines the generators of the tier that is being compiled.
#define NESCIO_DEFINE_GENERATORS(tier)                                                       \
  namespace tier {                                                                           \
  constexpr Generator kGenerators[kGeneratorCount] = {                                       \
      {GeneratorId::aes128, "aes128", radix_bits(GeneratorId::aes128), aes128::tier::expand, \
       aes128::tier::leaves},                                                                \
      NESCIO_CORE_GENERATOR(chacha20, ChaChaCore<20>),                                       \
      NESCIO_CORE_GENERATOR(chacha12, ChaChaCore<12>),                                       \
      NESCIO_CORE_GENERATOR(chacha8, ChaChaCore<8>),                                         \
      NESCIO_CORE_GENERATOR(salsa20, Salsa20Core),                                           \
      NESCIO_CORE_GENERATOR(sha256, Sha256Core),                                             \
      NESCIO_CORE_GENERATOR(insecure_siphash, SipHashCore),                                  \
      NESCIO_CORE_GENERATOR(insecure_highwayhash, HighwayHashCore)};                         \
  }

}  // namespace nescio::prg
