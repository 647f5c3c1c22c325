#include "ot/stream.h"

#include <algorithm>
#include <cstring>

namespace nescio::ot {
namespace {

constexpr std::size_t kWordsPerBlock = 4;
constexpr std::size_t kRun = 64;

Block block_of(const std::uint8_t key[16]) {
  Block block;
  std::memcpy(&block, key, sizeof(block));
  return block;
}

auto encryption(Tier tier) {
#if defined(NESCIO_X86_64)
  if (tier >= Tier::avx512) return prg::aes128::avx512::encrypt;
  if (tier >= Tier::avx2) return prg::aes128::avx2::encrypt;
#endif
  static_cast<void>(tier);
  return prg::aes128::portable::encrypt;
}

}  // namespace

WordStream::WordStream(const std::uint8_t key[16], Tier tier)
    : keys_(prg::aes128::variable_time_expand_key(block_of(key))), tier_(tier) {}

void WordStream::words(std::uint64_t first_word, std::size_t count, std::uint32_t* out) const {
  const auto encrypt = encryption(tier_);
  Block run[kRun];
  while (count > 0) {
    const std::size_t skipped = first_word % kWordsPerBlock;
    const std::size_t taken = std::min(count, kRun * kWordsPerBlock - skipped);
    const std::size_t blocks = (skipped + taken + kWordsPerBlock - 1) / kWordsPerBlock;
    for (std::size_t i = 0; i < blocks; ++i) run[i] = {first_word / kWordsPerBlock + i, 0};
    encrypt(keys_, run, blocks, run);
    std::memcpy(out, reinterpret_cast<const std::uint8_t*>(run) + skipped * sizeof(*out),
                taken * sizeof(*out));
    first_word += taken;
    count -= taken;
    out += taken;
  }
}

}  // namespace nescio::ot
