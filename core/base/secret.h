#pragma once

#include <cstddef>

#if defined(NESCIO_MEMCHECK)
#include <valgrind/memcheck.h>
#endif

namespace nescio {

/// Says that a value computed from secrets may be branched on: it reveals what is meant to be
/// revealed, or nothing. Does nothing but under the constant-time test, where secrets are memory
/// that Valgrind holds for uninitialised.
template <class T>
inline T declassify(T value) {
#if defined(NESCIO_MEMCHECK)
  VALGRIND_MAKE_MEM_DEFINED(&value, sizeof(value));
#endif
  return value;
}

}  // namespace nescio
