#include "dpf/correct_words.h"

#include "dpf/correct_words_impl.h"

namespace nescio::dpf::portable {

CorrectWords correct_words(Output output) { return choose(output); }

}  // namespace nescio::dpf::portable
