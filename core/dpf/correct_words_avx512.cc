// Compiled for AVX-512. Must not define functions that other tiers share (scripts/check_tiers.py).
#include "dpf/correct_words.h"
#include "dpf/correct_words_impl.h"

namespace nescio::dpf::avx512 {

CorrectWords correct_words(Output output) { return choose(output); }

}  // namespace nescio::dpf::avx512
