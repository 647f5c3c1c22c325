// Fuzz target: bytes from outside as a key. Whatever parse_key accepts must evaluate without a
// fault and survive another round through its own shape; whatever it refuses must be refused by
// Error.

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
    const dpf::Key key = dpf::parse_key({data, size});
    if (key.shape.key_bytes() != size) std::abort();
    std::array<std::uint8_t, 64 * 16> out;
    const std::uint64_t last = key.shape.domain - 1, stop = std::min<std::uint64_t>(last + 1, 64);
    dpf::evaluate_range({&key, 1}, 0, stop, out.data(), pool, active_tier());
    dpf::evaluate_points({&key, 1}, {&last, 1}, out.data(), pool, active_tier());
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::malformed_key) {
      std::fprintf(stderr, "unexpected: %s\n", error.what());
      std::abort();
    }
  }
  return 0;
}
