// Compiled for AVX2. Includes nothing that could leave shared code behind.
#include "ot/codes/primal.h"
#include "ot/codes/primal_impl.h"

namespace nescio::ot::avx2 {

void add_rows(std::uint32_t* words, const Block* seeds, std::uint64_t k, std::size_t rows,
              Block* noise) {
  add_rows_impl(words, seeds, k, rows, noise);
}

}  // namespace nescio::ot::avx2
