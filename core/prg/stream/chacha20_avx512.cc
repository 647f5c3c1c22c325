// Compiled for AVX-512. Must not define functions that other tiers share (scripts/check_tiers.py).
#include "prg/stream/chacha20.h"
#include "prg/stream/chacha20_impl.h"

namespace nescio::prg::avx512 {

NESCIO_DEFINE_CHACHA20_BLOCKS

}  // namespace nescio::prg::avx512
