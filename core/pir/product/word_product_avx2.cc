// Compiled for AVX2. Includes nothing that could leave shared code behind.
#include "pir/product/word_product.h"
#include "pir/product/word_product_impl.h"

namespace nescio::pir::avx2 {

AddRows word_product(dpf::Output output) { return choose(output); }

}  // namespace nescio::pir::avx2
