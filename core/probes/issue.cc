#include "probes/issue.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "base/error.h"

namespace nescio::probes {
namespace {

constexpr std::string_view kNames[] = {"bit", "u8", "u32", "u64", "aes", "words"};

}  // namespace

Instruction parse_instruction(std::string_view name) {
  const auto* const found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) {
    throw Error(ErrorKind::argument, "instruction: found '" + std::string(name) +
                                         "', expected bit, u8, u32, u64, aes or words");
  }
  return static_cast<Instruction>(found - std::begin(kNames));
}

Issue measure_issue(Instruction instruction, Tier tier) {
  constexpr std::size_t kTries = 200, kRounds = 1000;
  const Loop loop = NESCIO_PICK(tier, issue_loop)(instruction);
  if (loop.bytes == 0) return {0, 0};
  double best = 1e9;
  for (std::size_t attempt = 0; attempt < kTries; ++attempt) {
    const auto begin = std::chrono::steady_clock::now();
    loop.run(kRounds);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    best = std::min(best, taken.count());
  }
  return {loop.bytes, best / static_cast<double>(kRounds * kChains)};
}

namespace portable {

Loop issue_loop(Instruction) { return {}; }

}  // namespace portable
}  // namespace nescio::probes
