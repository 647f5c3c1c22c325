#include "probes/rlwe.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/buffer.h"
#include "prg/stream/chacha20.h"
#include "rlwe/kernels.h"

namespace nescio::rlwe {
namespace {

constexpr int kTries = 15, kRuns = 20;
constexpr std::size_t kTerms = 8, kBlocks = 512;

/// The seconds of one call in the fastest of some attempts.
template <class Work>
double best_seconds(const Work& work) {
  double best = 1e9;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const auto begin = std::chrono::steady_clock::now();
    for (int run = 0; run < kRuns; ++run) work();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    best = std::min(best, taken.count() / kRuns);
  }
  return best;
}

}  // namespace

RowSeconds seconds_per_row(Tier tier) {
  const Kernels& kernels = kernels_of(tier);
  Buffer<std::uint32_t> row(kDegree), out(kDegree);
  for (std::size_t k = 0; k < kDegree; ++k) row[k] = out[k] = static_cast<std::uint32_t>(k);
  Buffer<std::uint8_t> stream(kBlocks * prg::kStreamBlockBytes);
  const std::vector<Term> terms(kTerms, Term{row.data(), row.data()});
  return {
      best_seconds([&] { kernels.forward(0, out.data()); }),
      best_seconds([&] { kernels.inverse(0, out.data()); }),
      best_seconds([&] { kernels.multiply(0, terms, out.data()); }) / kTerms,
      best_seconds([&] { prg::chacha20_blocks({}, 0, kBlocks, stream.data(), tier); }) / kBlocks};
}

}  // namespace nescio::rlwe
