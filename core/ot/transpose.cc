#include "ot/transpose.h"

#include <algorithm>
#include <array>

#include "base/bits.h"

namespace nescio::ot {
namespace {

/// Bytes of a row that are read at a time: a cache line.
constexpr std::size_t kLine = 64;

/// Transposes the 8 x 8 bits of one byte of eight rows: bit b of row j becomes bit j of byte b.
std::uint64_t turned(const std::uint8_t* rows, std::size_t stride) {
  std::uint64_t square = 0;
  for (std::size_t j = 0; j < 8; ++j) square |= std::uint64_t{rows[j * stride]} << (8 * j);
  return nescio::transpose_bits(square);
}

}  // namespace

void transpose_bits(const std::uint8_t* rows, std::size_t bytes, Block* out) {
  for (std::size_t from = 0; from < bytes; from += kLine) {
    const std::size_t count = std::min(kLine, bytes - from);
    std::fill_n(out + 8 * from, 8 * count, Block{});
    for (std::size_t group = 0; group < 16; ++group) {
      for (std::size_t i = from; i < from + count; ++i) {
        const std::uint64_t columns = turned(rows + 8 * group * bytes + i, bytes);
        for (std::size_t b = 0; b < 8; ++b) {
          const std::uint64_t byte = (columns >> (8 * b) & 0xFF) << (8 * (group % 8));
          (group < 8 ? out[8 * i + b].lo : out[8 * i + b].hi) |= byte;
        }
      }
    }
  }
}

}  // namespace nescio::ot
