#pragma once

// One kernel, several CPU tiers: a header declares a kernel's names for every tier, a file for each
// tier defines them, and the caller's tier picks at run time.
//
//     NESCIO_TIERS(extern const Kernels kKernels;)         in the header
//     NESCIO_PICK(tier, kKernels).multiply(...)            portable::, avx2:: or avx512::kKernels
//
// A tier's names are functions, or one constant table of functions. On other processors than x86-64
// only the files of the portable tier are built, and NESCIO_PICK names no other.

#include "base/cpu.h"

/// Declares the same names in the namespaces portable, avx2 and avx512.
#define NESCIO_TIERS(...) \
  namespace portable {    \
  __VA_ARGS__             \
  }                       \
  namespace avx2 {        \
  __VA_ARGS__             \
  }                       \
  namespace avx512 {      \
  __VA_ARGS__             \
  }

/// `name` of the namespace of `tier`: a reference to it.
#if defined(NESCIO_X86_64)
#define NESCIO_PICK(tier, name) ::nescio::pick(tier, portable::name, avx2::name, avx512::name)
#else
#define NESCIO_PICK(tier, name) ::nescio::pick(tier, portable::name, portable::name, portable::name)
#endif

namespace nescio {

/// The one of three values that is for `tier`.
template <class T>
[[gnu::always_inline]] constexpr inline const T& pick(Tier tier, const T& portable, const T& avx2,
                                                      const T& avx512) {
  return tier >= Tier::avx512 ? avx512 : tier >= Tier::avx2 ? avx2 : portable;
}

}  // namespace nescio
