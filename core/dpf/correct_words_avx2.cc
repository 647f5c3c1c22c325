// Compiled for AVX2. Must not define functions that other tiers share (scripts/check_tiers.py).
#include "dpf/correct_words.h"
#include "dpf/correct_words_impl.h"

namespace nescio::dpf::avx2 {

CorrectWords correct_words(Output output) { return choose(output); }

}  // namespace nescio::dpf::avx2
