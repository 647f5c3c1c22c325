#include "pir/product/word_product.h"

#include "pir/product/word_product_impl.h"

namespace nescio::pir {

AddRows word_product(dpf::Output output, Tier tier) {
  return NESCIO_PICK(tier, word_product)(output);
}

namespace portable {

AddRows word_product(dpf::Output output) { return choose(output); }

}  // namespace portable
}  // namespace nescio::pir
