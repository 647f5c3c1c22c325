#include "ot/keys.h"

namespace nescio::ot {

ExpandKeys expand_keys_of(Tier tier) {
#if defined(NESCIO_X86_64)
  if (tier >= Tier::avx512) return prg::aes128::avx512::expand_keys;
  if (tier >= Tier::avx2) return prg::aes128::avx2::expand_keys;
#endif
  static_cast<void>(tier);
  return prg::aes128::portable::expand_keys;
}

}  // namespace nescio::ot
