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

/// Indices below `blocks` in an order that a CPU cannot predict.
Buffer<std::uint32_t> random_indices(std::size_t blocks) {
  Buffer<std::uint32_t> indices(kReads);
  std::uint64_t state = 1;
  for (std::size_t i = 0; i < kReads; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    indices[i] = static_cast<std::uint32_t>((state >> 32) * blocks >> 32);
  }
  return indices;
}

}  // namespace

double seconds_per_read(std::size_t blocks) {
  Buffer<Block> memory(blocks);
  for (std::size_t i = 0; i < blocks; ++i) memory[i] = {i, i};
  const Buffer<std::uint32_t> indices = random_indices(blocks);
  Block sums[4] = {};
  double best = 1e9;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < kReads; i += 4) {
      for (std::size_t j = 0; j < 4; ++j) sums[j] ^= memory[indices[i + j]];
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    best = std::min(best, taken.count() / kReads);
  }
  asm volatile("" : : "r"(sums) : "memory");  // keeps the compiler from removing the reads
  return best;
}

}  // namespace nescio::ot
