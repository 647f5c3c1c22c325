#pragma once

// The generators for a GPU thread. Each is a class with
//
//     kId, kRadixBits
//     kSharedBytes                       bytes of shared memory that it needs
//     G(block, tables, shared, threads)  constructed by all threads of a block together
//     children(s, out), leaf(s, out)     compute the children of a node, and its leaf
//
// Generators without tables are the per-node code of the CPU's portable tier.

#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "prg/aes128_gpu.h"
#include "prg/chacha.h"
#include "prg/highwayhash.h"
#include "prg/prg.h"
#include "prg/salsa20.h"
#include "prg/sha256.h"
#include "prg/siphash.h"

namespace nescio::prg {

/// The conversion of a block to the words of a Core.
template <class Word>
struct BlockWords;

template <>
struct BlockWords<std::uint32_t> {
  NESCIO_INLINE static void split(Block s, std::uint32_t* out) {
    out[0] = static_cast<std::uint32_t>(s.lo);
    out[1] = static_cast<std::uint32_t>(s.lo >> 32);
    out[2] = static_cast<std::uint32_t>(s.hi);
    out[3] = static_cast<std::uint32_t>(s.hi >> 32);
  }
  NESCIO_INLINE static Block join(const std::uint32_t* w) {
    return {w[0] | static_cast<std::uint64_t>(w[1]) << 32, w[2] | static_cast<std::uint64_t>(w[3])
                                                                      << 32};
  }
};

template <>
struct BlockWords<std::uint64_t> {
  NESCIO_INLINE static void split(Block s, std::uint64_t* out) {
    out[0] = s.lo;
    out[1] = s.hi;
  }
  NESCIO_INLINE static Block join(const std::uint64_t* w) { return {w[0], w[1]}; }
};

/// A generator made from the per-node code of a Core.
template <GeneratorId id, class Core>
class CoreGpu {
 public:
  static constexpr GeneratorId kId = id;
  static constexpr unsigned kRadixBits = Core::kRadixBits;
  static constexpr std::size_t kSharedBytes = 0;

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE CoreGpu(B&, const GpuTables&, std::byte*, unsigned) {}

  NESCIO_DEVICE void children(Block s, Block* out) const {
    Word node[kBlockWords], words[kBlockWords << kRadixBits];
    Words::split(s, node);
    Core::template children<Word>(node, words);
    NESCIO_UNROLL
    for (unsigned j = 0; j < 1u << kRadixBits; ++j) out[j] = Words::join(words + j * kBlockWords);
  }
  NESCIO_DEVICE void leaf(Block s, Block* out) const {
    Word node[kBlockWords], words[kBlockWords * kLeafBlocks];
    Words::split(s, node);
    Core::template leaf<Word>(node, words);
    NESCIO_UNROLL
    for (unsigned j = 0; j < kLeafBlocks; ++j) out[j] = Words::join(words + j * kBlockWords);
  }

 private:
  using Word = typename Core::Word;
  using Words = BlockWords<Word>;
  static constexpr unsigned kBlockWords = sizeof(Block) / sizeof(Word);
};

/// Calls `f.operator()<G>()` for the class G of a generator.
template <class F>
void with_gpu_generator(GeneratorId id, F&& f) {
  using enum GeneratorId;
  switch (id) {
    case aes128: return f.template operator()<Aes128Gpu>();
    case chacha20: return f.template operator()<CoreGpu<chacha20, ChaChaCore<20>>>();
    case chacha12: return f.template operator()<CoreGpu<chacha12, ChaChaCore<12>>>();
    case chacha8: return f.template operator()<CoreGpu<chacha8, ChaChaCore<8>>>();
    case salsa20: return f.template operator()<CoreGpu<salsa20, Salsa20Core>>();
    case sha256: return f.template operator()<CoreGpu<sha256, Sha256Core>>();
    case insecure_siphash: return f.template operator()<CoreGpu<insecure_siphash, SipHashCore>>();
    case insecure_highwayhash:
      return f.template operator()<CoreGpu<insecure_highwayhash, HighwayHashCore>>();
  }
  throw Error(ErrorKind::argument, "generator: no GPU implementation");
}

}  // namespace nescio::prg
