// Compiled for AVX2. Must not define functions that other tiers share (scripts/check_tiers.py).
#include "hash/records.h"
#include "hash/records_impl.h"

namespace nescio::hash::avx2 {

NESCIO_DEFINE_HASH_ALL

}  // namespace nescio::hash::avx2
