#include "prg/aes128_gpu.h"

#include <bit>

namespace nescio::prg {
namespace {

std::uint32_t low_word(std::uint64_t x) { return static_cast<std::uint32_t>(x); }

/// Computes the S-box from the key schedule: the first byte of round key 1 is the key's first byte XOR
/// 1 XOR S[byte 13 of the key] (FIPS 197, section 5.2).
std::array<std::uint8_t, 256> sub_bytes() {
  std::array<std::uint8_t, 256> box;
  for (std::uint64_t x = 0; x < 256; ++x) {
    const aes128::RoundKeys keys = aes128::variable_time_expand_key({0, x << 40});
    box[x] = static_cast<std::uint8_t>(keys.key[1].lo) ^ 1;
  }
  return box;
}

std::uint32_t times2(std::uint32_t a) { return ((a << 1) ^ ((a >> 7) * 0x1B)) & 0xFF; }

}  // namespace

std::array<std::uint32_t, 256> aes_table() {
  std::array<std::uint32_t, 256> table;
  const auto box = sub_bytes();
  for (std::size_t x = 0; x < table.size(); ++x) {
    const std::uint32_t s = box[x], twice = times2(s);
    table[x] = twice | s << 8 | s << 16 | (twice ^ s) << 24;
  }
  return table;
}

AesColumns aes_round_keys() { return aes_round_keys(aes128::fixed_round_keys()); }

AesColumns aes_round_keys(const aes128::RoundKeys& keys) {
  AesColumns columns;
  for (std::size_t round = 0; round < keys.key.size(); ++round) {
    const Block k = keys.key[round];
    columns[round] = {{low_word(k.lo), low_word(k.lo >> 32), low_word(k.hi), low_word(k.hi >> 32)}};
  }
  return columns;
}

}  // namespace nescio::prg
