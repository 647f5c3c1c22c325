#pragma once

#include <cstddef>

#if defined(NESCIO_MEMCHECK)
#include <valgrind/memcheck.h>
#endif

namespace nescio {

/// Declares a value computed from secrets as public, so that code may branch on it. Has an effect only
/// in the constant-time test, where Valgrind treats secrets as uninitialized memory.
template <class T>
inline T declassify(T value) {
#if defined(NESCIO_MEMCHECK)
  VALGRIND_MAKE_MEM_DEFINED(&value, sizeof(value));
#endif
  return value;
}

}  // namespace nescio
