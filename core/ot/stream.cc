#include "ot/stream.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace nescio::ot {

prg::aes128::RoundKeys public_round_keys(const std::uint8_t key[16]) {
  Block block;
  std::memcpy(&block, key, sizeof(block));
  return prg::aes128::variable_time_expand_key(block);
}

WordStream::WordStream(const std::uint8_t key[16], Tier tier)
    : keys_(public_round_keys(key)), encrypt_counters_(prg::aes128::cipher_of(tier).count) {}

void WordStream::words(std::uint64_t first_word, std::size_t count, std::uint32_t* out) const {
  constexpr std::size_t kBlocks = 256, kWords = 4;
  std::array<Block, kBlocks> blocks;
  while (count > 0) {
    const std::size_t skipped = first_word % kWords;
    const std::size_t taken = std::min(count, kWords * kBlocks - skipped);
    const std::size_t needed = (skipped + taken + kWords - 1) / kWords;
    encrypt_counters_(keys_, first_word / kWords, needed, blocks.data());
    std::memcpy(out, reinterpret_cast<const char*>(blocks.data()) + skipped * sizeof(*out),
                taken * sizeof(*out));
    first_word += taken;
    out += taken;
    count -= taken;
  }
}

}  // namespace nescio::ot
