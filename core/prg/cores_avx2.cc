// Compiled for AVX2. Must not define functions that other tiers share (scripts/check_tiers.py).
#include "prg/cores.h"
#include "prg/cores_impl.h"

namespace nescio::prg {

NESCIO_DEFINE_GENERATORS(avx2)

}  // namespace nescio::prg
