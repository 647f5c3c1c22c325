// Fuzz target: untrusted bytes as a key. Keys must either throw Error, or evaluate without a memory
// error and serialize to a shape that it parses again.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "base/thread_pool.h"
#include "dpf/evaluate.h"
#include "dpf/key.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace nescio;
  static ThreadPool pool(1);
  try {
    const dpf::Keys keys(data, 1, size);
    if (keys.shape().key_bytes() != size) std::abort();
    std::array<std::uint8_t, 64 * 16> out;
    const std::uint64_t last = keys.shape().domain - 1,
                        stop = std::min<std::uint64_t>(last + 1, 64);
    dpf::evaluate_range(keys, 0, stop, out.data(), pool, active_tier());
    dpf::evaluate_points(keys, {&last, 1}, out.data(), pool, active_tier());
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::malformed_key) {
      std::fprintf(stderr, "unexpected: %s\n", error.what());
      std::abort();
    }
  }
  return 0;
}
