// Compiled for AVX2. Must not define functions that other tiers share (scripts/check_tiers.py).
#include "pir/product/word_product.h"
#include "pir/product/word_product_impl.h"

namespace nescio::pir::avx2 {

AddRows word_product(dpf::Output output) { return choose(output); }

}  // namespace nescio::pir::avx2
