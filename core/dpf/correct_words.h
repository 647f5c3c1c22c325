#pragma once

#include <cstddef>

#include "base/block.h"
#include "dpf/output.h"

namespace nescio::dpf {

/// leaves = (leaves + t_i * correction) * (-1)^party, word by word, for n leaves of one key.
using CorrectWords = void (*)(const Block* nodes, std::size_t n, const Block* correction,
                              unsigned party, Block* leaves);

/// One vocabulary a tier: the above for each additive output.
#define NESCIO_CORRECT_WORDS_TIER(tier)      \
  namespace tier {                           \
  CorrectWords correct_words(Output output); \
  }

NESCIO_CORRECT_WORDS_TIER(portable)
NESCIO_CORRECT_WORDS_TIER(avx2)
NESCIO_CORRECT_WORDS_TIER(avx512)

#undef NESCIO_CORRECT_WORDS_TIER

}  // namespace nescio::dpf
