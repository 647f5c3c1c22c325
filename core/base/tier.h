#pragma once

// Dispatch by CPU tier. A header declares a kernel's names for every tier, one file per tier defines
// them, and NESCIO_PICK chooses at run time.
//
//     NESCIO_TIERS(extern const Kernels kKernels;)         in the header
//     NESCIO_PICK(tier, kKernels).multiply(...)            portable::, avx2:: or avx512::kKernels
//
// A tier's names are functions, or one constant table of functions. Other CPUs than x86-64 build only
// the portable tier, and NESCIO_PICK always chooses it.

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

/// A reference to `name` in the namespace of `tier`.
#if defined(NESCIO_X86_64)
#define NESCIO_PICK(tier, name) ::nescio::pick(tier, portable::name, avx2::name, avx512::name)
#else
#define NESCIO_PICK(tier, name) ::nescio::pick(tier, portable::name, portable::name, portable::name)
#endif

namespace nescio {

/// Returns the value for `tier`.
template <class T>
[[gnu::always_inline]] constexpr inline const T& pick(Tier tier, const T& portable, const T& avx2,
                                                      const T& avx512) {
  return tier >= Tier::avx512 ? avx512 : tier >= Tier::avx2 ? avx2 : portable;
}

}  // namespace nescio
