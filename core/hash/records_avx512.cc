// Compiled for AVX-512. Must not define functions that other tiers share (scripts/check_tiers.py).
#include "hash/records.h"
#include "hash/records_impl.h"

namespace nescio::hash::avx512 {

NESCIO_DEFINE_HASH_ALL

}  // namespace nescio::hash::avx512
