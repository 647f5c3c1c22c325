// The body of chacha20*.cc: each tier's file includes it once and compiles it with its own flags. All of
// it is private to the file that includes it.
//
// A tier computes as many blocks at once as a register holds words, one per lane (base/lanes_impl.h).

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/lanes_impl.h"
#include "prg/chacha.h"
#include "prg/stream/chacha20.h"

namespace nescio::prg {
namespace {

using Word = std::uint32_t;
using Words = Lanes<Word>::Words;
constexpr std::size_t kPieces = kStreamBlockBytes / sizeof(Block);

/// The block, of the kLanes<Word> blocks computed at once, that a lane belongs to.
constexpr std::size_t block_of(std::size_t lane) {
  constexpr std::size_t words = kBlockWords<Word>;
  return kLanes<Word> == 1 ? 0 : kLanes<Word> / words * (lane % words) + lane / words;
}

/// The input of the block function for the blocks first, first + 1, ..., one per lane.
inline void start(const StreamKey& key, Word first, Words* in) {
  constexpr Word constants[4] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
  for (std::size_t w = 0; w < 4; ++w) in[w] = broadcast<Words>(constants[w]);
  for (std::size_t w = 0; w < 8; ++w) in[4 + w] = broadcast<Words>(key.key[w]);
  Word counters[kLanes<Word>];
  for (std::size_t lane = 0; lane < kLanes<Word>; ++lane) {
    counters[lane] = first + static_cast<Word>(block_of(lane));
  }
  std::memcpy(&in[12], counters, sizeof(counters));
  for (std::size_t w = 0; w < 3; ++w) in[13 + w] = broadcast<Words>(key.nonce[w]);
}

inline void write_blocks(const StreamKey& key, Word first, std::size_t count, std::uint8_t* out) {
  constexpr std::size_t lanes = kLanes<Word>;
  alignas(64) Block pieces[kPieces][lanes];
  Words in[16], x[16];
  for (std::size_t i = 0; i < count; i += lanes, first += static_cast<Word>(lanes)) {
    start(key, first, in);
    ChaChaCore<20>::block(in, x);
    for (std::size_t g = 0; g < kPieces; ++g) store_words<Word>(x + 4 * g, pieces[g]);
    for (std::size_t b = 0; b < lanes && i + b < count; ++b, out += kStreamBlockBytes) {
      for (std::size_t g = 0; g < kPieces; ++g) {
        std::memcpy(out + g * sizeof(Block), &pieces[g][b], sizeof(Block));
      }
    }
  }
}

}  // namespace

/// Defines the function of the tier that is being compiled.
#define NESCIO_DEFINE_CHACHA20_BLOCKS                                                \
  void chacha20_blocks(const StreamKey& key, std::uint32_t first, std::size_t count, \
                       std::uint8_t* out) {                                          \
    write_blocks(key, first, count, out);                                            \
  }

}  // namespace nescio::prg
