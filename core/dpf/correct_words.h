#pragma once

#include <cstddef>

#include "base/block.h"
#include "base/tier.h"
#include "dpf/output.h"

namespace nescio::dpf {

/// leaves = (leaves + t_i * correction) * (-1)^party, word by word, for n leaves of one key.
using CorrectWords = void (*)(const Block* nodes, std::size_t n, const Block* correction,
                              unsigned party, Block* leaves);

/// Returns the function for an additive output.
NESCIO_TIERS(CorrectWords correct_words(Output output);)

}  // namespace nescio::dpf
