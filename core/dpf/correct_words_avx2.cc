// Compiled for AVX2. Includes nothing that could leave shared code behind.
#include "dpf/correct_words.h"
#include "dpf/correct_words_impl.h"

namespace nescio::dpf::avx2 {

CorrectWords correct_words(Output output) { return choose(output); }

}  // namespace nescio::dpf::avx2
