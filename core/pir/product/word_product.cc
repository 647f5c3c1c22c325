#include "pir/product/word_product.h"

#include "pir/product/word_product_impl.h"

namespace nescio::pir {

AddRows word_product(dpf::Output output, Tier tier) {
#if defined(NESCIO_X86_64)
  if (tier >= Tier::avx512) return avx512::word_product(output);
  if (tier >= Tier::avx2) return avx2::word_product(output);
#endif
  static_cast<void>(tier);
  return portable::word_product(output);
}

namespace portable {

AddRows word_product(dpf::Output output) { return choose(output); }

}  // namespace portable
}  // namespace nescio::pir
