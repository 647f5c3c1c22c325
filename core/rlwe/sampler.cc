#include "rlwe/sampler.h"

#include <algorithm>
#include <cstring>

#include "base/random.h"
#include "prg/stream/chacha20.h"

namespace nescio::rlwe {
namespace {

constexpr std::uint32_t kResidueMask = (std::uint32_t{1} << 30) - 1;

}  // namespace

Seed random_seed() {
  Seed seed;
  random_bytes(seed.data(), seed.size());
  return seed;
}

Sampler::Sampler(const Seed& seed, Tier tier) : tier_(tier) {
  std::memcpy(key_.data(), seed.data(), seed.size());
}

Sampler::~Sampler() { wipe(key_.data(), sizeof(key_)); }

void Sampler::blocks(Kind kind, std::uint32_t number, std::uint32_t prime, std::uint64_t first,
                     std::size_t count, void* out) const {
  prg::StreamKey key = {key_, {static_cast<std::uint32_t>(kind), number, prime}};
  prg::chacha20_blocks(key, first, count, out, tier_);
  wipe(&key, sizeof(key));
}

void Sampler::variable_time_uniform(std::uint32_t number, unsigned i, std::uint32_t* row) const {
  constexpr std::size_t kBlocks = 64, kWords = kBlocks * prg::kStreamBlockBytes / 4;
  std::array<std::uint32_t, kWords> words;
  std::size_t filled = 0;
  for (std::uint64_t first = 0; filled < kDegree; first += kBlocks) {
    blocks(Kind::uniform, number, i, first, kBlocks, words.data());
    for (std::size_t w = 0; w < kWords && filled < kDegree; ++w) {
      row[filled] = words[w] & kResidueMask;
      filled += row[filled] < kPrimes[i].p;
    }
  }
}

void Sampler::from_words(Kind kind, std::uint32_t number,
                         void (*convert)(const std::uint64_t*, std::int32_t*),
                         std::int32_t* out) const {
  SecretBuffer<std::uint64_t> words(kDegree);
  blocks(kind, number, 0, 0, kDegree * 8 / prg::kStreamBlockBytes, words.data());
  convert(words.data(), out);
}

void Sampler::ternary(std::uint32_t number, std::int32_t* out) const {
  from_words(Kind::ternary, number, kernels_of(tier_).ternary, out);
}

void Sampler::errors(std::uint32_t number, std::int32_t* out) const {
  from_words(Kind::error, number, kernels_of(tier_).errors, out);
}

void Sampler::masks(std::uint32_t number, std::size_t count, std::uint32_t* out) const {
  constexpr std::size_t kWords = prg::kStreamBlockBytes / 4;
  const std::size_t whole = count / kWords;
  blocks(Kind::mask, number, 0, 0, whole, out);
  if (count % kWords == 0) return;
  std::array<std::uint32_t, kWords> last;
  blocks(Kind::mask, number, 0, whole, 1, last.data());
  std::copy_n(last.begin(), count % kWords, out + whole * kWords);
  wipe(last.data(), sizeof(last));
}

}  // namespace nescio::rlwe
