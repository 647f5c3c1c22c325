#include "probes/ot.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/block.h"
#include "base/buffer.h"

namespace nescio::ot {
namespace {

constexpr std::size_t kReads = 1 << 16;
constexpr int kTries = 15;

/// Places below `blocks` in no order that a processor could guess.
Buffer<std::uint32_t> random_places(std::size_t blocks) {
  Buffer<std::uint32_t> places(kReads);
  std::uint64_t state = 1;
  for (std::size_t i = 0; i < kReads; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    places[i] = static_cast<std::uint32_t>((state >> 32) * blocks >> 32);
  }
  return places;
}

}  // namespace

double seconds_per_read(std::size_t blocks) {
  Buffer<Block> memory(blocks);
  for (std::size_t i = 0; i < blocks; ++i) memory[i] = {i, i};
  const Buffer<std::uint32_t> places = random_places(blocks);
  Block sums[4] = {};
  double best = 1e9;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < kReads; i += 4) {
      for (std::size_t j = 0; j < 4; ++j) sums[j] ^= memory[places[i + j]];
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    best = std::min(best, taken.count() / kReads);
  }
  asm volatile("" : : "r"(sums) : "memory");  // so that nothing is left out
  return best;
}

}  // namespace nescio::ot
