// Compiled for AVX-512. Includes nothing that could leave shared code behind.
#include "prg/cores.h"
#include "prg/cores_impl.h"

namespace nescio::prg {

NESCIO_DEFINE_GENERATORS(avx512)

}  // namespace nescio::prg
