// The body of primal*.cc. Each tier's file includes it once and compiles it with the tier's flags.
// Everything here is private to the including file.

#include <cstddef>
#include <cstdint>

#include "base/block.h"
#include "ot/codes/primal.h"

namespace nescio::ot {
namespace {

/// Turns `count` words into the offsets of the seeds they select, in units of 8 bytes: x86-64
/// addressing modes scale by up to 8, so that the hot loop computes no addresses.
inline void to_offsets(std::uint64_t k, std::size_t count, std::uint32_t* words) {
  if ((k & (k - 1)) == 0) {
    const auto mask = static_cast<std::uint32_t>(k - 1);
    for (std::size_t i = 0; i < count; ++i) words[i] = (words[i] & mask) << 1;
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      words[i] = static_cast<std::uint32_t>((words[i] * k) >> 32) << 1;
    }
  }
}

inline void add_rows_impl(std::uint32_t* words, const Block* seeds, std::uint64_t k,
                          std::size_t rows, Block* noise) {
  to_offsets(k, rows * kRowWeight, words);
  const std::uint32_t* offset = words;
  const auto* base = reinterpret_cast<const char*>(seeds);
  for (std::size_t row = 0; row < rows; ++row, offset += kRowWeight) {
    Block sum = noise[row];
    for (std::size_t j = 0; j < kRowWeight; ++j)
      sum ^= *reinterpret_cast<const Block*>(base + 8 * std::uint64_t{offset[j]});
    noise[row] = sum;
  }
}

}  // namespace
}  // namespace nescio::ot
