// Compiled for AVX2. Includes nothing that could leave shared code behind.
#include "prg/cores.h"
#include "prg/cores_impl.h"

namespace nescio::prg {

NESCIO_DEFINE_GENERATORS(avx2)

}  // namespace nescio::prg
