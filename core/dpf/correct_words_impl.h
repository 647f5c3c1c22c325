// The body of correct_words*.cc: each tier's file includes it once and compiles it with its own
// flags. All of it is private to the file that includes it.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/block.h"
#include "dpf/correct_words.h"

namespace nescio::dpf {
namespace {

__extension__ typedef unsigned __int128 WideWord;

/// x = (x + t * correction) * (-1)^party for the words of n leaves.
template <class W>
void correct(const Block* nodes, std::size_t n, const Block* correction, unsigned party,
             Block* leaves) {
  constexpr std::size_t kWords = 64 / sizeof(W);
  const W sign = static_cast<W>(-static_cast<W>(party));
  W cw[kWords];
  std::memcpy(cw, correction, sizeof(cw));
  for (std::size_t i = 0; i < n; ++i) {
    const W mask = static_cast<W>(-static_cast<W>(nodes[i].lo & 1));
    W x[kWords];
    std::memcpy(x, leaves + 4 * i, sizeof(x));
    for (std::size_t k = 0; k < kWords; ++k) {
      x[k] = static_cast<W>((static_cast<W>(x[k] + (cw[k] & mask)) ^ sign) - sign);
    }
    std::memcpy(leaves + 4 * i, x, sizeof(x));
  }
}

CorrectWords choose(Output output) {
  switch (output) {
    case Output::u32: return correct<std::uint32_t>;
    case Output::u64: return correct<std::uint64_t>;
    case Output::u128: return correct<WideWord>;
    default: return correct<std::uint8_t>;
  }
}

}  // namespace
}  // namespace nescio::dpf
