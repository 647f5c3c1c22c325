// The codes of dual LPN under the sanitizers: every tier, with odd sizes, returns the result of the
// portable code on one thread. That code is compared with the executable specification in Python.

#include <cstdio>
#include <vector>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "check.h"
#include "ot/codes/expand_convolute.h"
#include "ot/codes/quasi_cyclic.h"

namespace {

using namespace nescio;

constexpr std::uint8_t kSeed[16] = {1, 2, 3, 4};
constexpr std::size_t kSizes[] = {64, 71, 257, 1019, 4127, 65541, 70001};

std::vector<Block> make_noise(std::size_t outputs) {
  std::vector<Block> noise(2 * outputs);
  for (std::size_t i = 0; i < noise.size(); ++i) {
    noise[i] = {i * 0x9E3779B97F4A7C15, ~i * 0xD1342543DE82EF95};
  }
  return noise;
}

std::vector<Block> convoluted(std::size_t outputs, unsigned threads, Tier tier) {
  std::vector<Block> noise = make_noise(outputs);
  ThreadPool pool(threads);
  ot::encode_expand_convolute(noise, kSeed, pool, tier);
  noise.resize(outputs);
  return noise;
}

std::vector<Block> multiplied(std::size_t outputs, unsigned threads, Tier tier) {
  ThreadPool pool(threads);
  ot::QuasiCyclicScratch scratch;
  const Buffer<Block> out =
      ot::encode_quasi_cyclic(make_noise(outputs), kSeed, outputs - 1, pool, tier, scratch);
  return {out.data(), out.data() + out.size()};
}

}  // namespace

int main() {
  for (std::size_t outputs : kSizes) {
    const auto convolved = convoluted(outputs, 1, Tier::portable);
    const auto product = multiplied(outputs, 1, Tier::portable);
    for (Tier tier : supported_tiers()) {
      CHECK(convoluted(outputs, 3, tier) == convolved);
      CHECK(multiplied(outputs, 3, tier) == product);
    }
  }
  std::puts("codes: good");
}
