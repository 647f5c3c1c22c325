// The loops of issue_*.cc: each tier's file includes it and compiles it with its own flags. All of it
// is private to the file that includes it.

#include <immintrin.h>

#include "probes/issue.h"

namespace nescio::probes {
namespace {

/// Applies `step` to each of kChains registers, over and over. As many chains hide the latency.
template <class Register, class Step>
[[gnu::always_inline]] inline void repeat(std::size_t rounds, Register start, Step step) {
  Register x[kChains];
#pragma GCC unroll 12
  for (std::size_t k = 0; k < kChains; ++k) {
    x[k] = start;
    asm volatile("" : "+v"(x[k]));  // so that no chain equals another
  }
  for (std::size_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (std::size_t k = 0; k < kChains; ++k) {
      x[k] = step(x[k]);
      asm volatile("" : "+v"(x[k]));
    }
  }
}

}  // namespace
}  // namespace nescio::probes
