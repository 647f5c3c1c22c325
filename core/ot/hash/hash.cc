#include "ot/hash/hash.h"

#include <algorithm>
#include <array>

#include "prg/aes128.h"

namespace nescio::ot {
namespace {

constexpr std::uint64_t kPeriod = std::uint64_t{1} << kPeriodBits;

/// The keys of successive key periods, expanded sixteen at a time.
class PeriodKeys {
 public:
  PeriodKeys(Tier tier, Block base) : cipher_(prg::aes128::cipher_of(tier)), base_(base) {}

  /// The key of a period. Callers ask for periods in order.
  const RoundKeys& of(std::uint64_t period) {
    if (period - first_ >= count_) {
      cipher_.expand_keys(base_, first_ = period, count_ = keys_.size(), keys_.data());
    }
    return keys_[period - first_];
  }

 private:
  prg::aes128::Cipher cipher_;
  Block base_;
  std::uint64_t first_ = 0, count_ = 0;
  std::array<RoundKeys, 16> keys_;
};

}  // namespace

void hash_blocks(std::span<const Block> blocks, std::uint64_t first_index, std::uint64_t tag,
                 Block base, Block delta, Block* out, ThreadPool& pool, Tier tier) {
  constexpr std::size_t kTask = std::size_t{1} << 14;
  const auto& hash_period = NESCIO_PICK(tier, hash_period);
  pool.run((blocks.size() + kTask - 1) / kTask, [&](std::size_t task, unsigned) {
    PeriodKeys keys(tier, base);
    const std::size_t end = std::min((task + 1) * kTask, blocks.size());
    for (std::size_t i = task * kTask, count; i < end; i += count) {
      const std::uint64_t index = first_index + i;
      count = std::min<std::size_t>(kPeriod - index % kPeriod, end - i);
      hash_period(keys.of(index / kPeriod), &blocks[i], count, {index, tag}, delta, out + i);
    }
  });
}

namespace portable {

void hash_period(const RoundKeys& keys, const Block* blocks, std::size_t n, Block first_tweak,
                 Block delta, Block* out) {
  constexpr std::size_t kBlocks = 64;
  for (std::size_t i = 0; i < n; i += kBlocks) {
    const std::size_t count = std::min(kBlocks, n - i);
    std::array<Block, kBlocks> inner, outer;
    for (std::size_t k = 0; k < count; ++k) outer[k] = blocks[i + k] ^ delta;
    prg::aes128::portable::encrypt(keys, outer.data(), count, inner.data());
    for (std::size_t k = 0; k < count; ++k) {
      outer[k] = inner[k] ^ Block { first_tweak.lo + i + k, first_tweak.hi };
    }
    prg::aes128::portable::encrypt(keys, outer.data(), count, outer.data());
    for (std::size_t k = 0; k < count; ++k) out[i + k] = outer[k] ^ inner[k];
  }
}

}  // namespace portable
}  // namespace nescio::ot
