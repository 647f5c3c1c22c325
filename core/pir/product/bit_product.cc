#include "pir/product/bit_product.h"

#include <algorithm>
#include <cstring>

#include "pir/sliced.h"

namespace nescio::pir {
namespace {

constexpr std::size_t kWords = kLineBytes / sizeof(std::uint64_t);

// The portable sums have a line of 64 bytes for each key and block: the XOR of the lines masked with
// the key's bytes. Parity is linear, so the parity of each byte, computed once at the end, is a bit of
// the sum.

void read_parities(const std::uint8_t* sums, std::size_t first, std::size_t count,
                   std::size_t row_bytes, std::uint8_t* rows) {
  const std::size_t blocks = block_count(row_bytes);
  for (std::size_t q = 0; q < count; ++q) {
    const std::uint8_t* from = sums + (first + q) * blocks * kLineBytes;
    for (std::size_t byte = 0; byte < row_bytes; ++byte) {
      std::uint64_t x;
      std::memcpy(&x, from + 8 * byte, sizeof(x));
      x ^= x >> 4;
      x ^= x >> 2;
      x ^= x >> 1;
      rows[q * row_bytes + byte] = pack_bits(x);
    }
  }
}

void add_block(const std::uint8_t* block, std::size_t lines, const std::uint8_t* shares,
               std::uint64_t* sum) {
  std::uint64_t total[kWords], line[kWords];
  std::memcpy(total, sum, sizeof(total));
  for (std::size_t r = 0; r < lines; ++r) {
    std::memcpy(line, block + r * kLineBytes, sizeof(line));
    const std::uint64_t mask = shares[r] * 0x0101010101010101ull;
    for (std::size_t k = 0; k < kWords; ++k) total[k] ^= line[k] & mask;
  }
  std::memcpy(sum, total, sizeof(total));
}

}  // namespace

const BitProduct& bit_product(Tier tier) { return NESCIO_PICK(tier, kBitProduct); }

namespace portable {

std::size_t scratch_bytes(std::size_t keys) { return keys * kLines; }

void lay_out(const std::uint8_t* shares, std::size_t stride, std::size_t keys,
             std::uint8_t* scratch) {
  for (std::size_t q = 0; q < keys; ++q)
    std::memcpy(scratch + q * kLines, shares + q * stride, kLines);
}

void copy_shares(const std::uint8_t* scratch, std::size_t keys, std::span<const RowPlace> rows,
                 const std::uint8_t* masks, std::uint8_t* out, std::size_t stride) {
  for (std::size_t first = 0; first < keys; first += kKeyGroup, ++masks, out += stride) {
    if (*masks == 0) continue;
    const std::size_t count = std::min(kKeyGroup, keys - first);
    for (const RowPlace& at : rows) {
      const std::uint8_t* own = scratch + first * kLines + at.row % kTileRows / kGroupRows;
      unsigned bits = 0;
      for (std::size_t q = 0; q < count; ++q) {
        bits |= (own[q * kLines] >> at.row % kGroupRows & 1u) << q;
      }
      out[at.place] = static_cast<std::uint8_t>(bits & *masks);
    }
  }
}

void lay_out_copies(const std::uint8_t* copies, std::size_t stride, std::size_t lines,
                    std::size_t keys, std::uint8_t* scratch) {
  for (std::size_t first = 0; first < keys; first += kKeyGroup, copies += stride) {
    const std::size_t count = std::min(kKeyGroup, keys - first);
    for (std::size_t r = 0; r < lines; ++r) {
      std::uint64_t rows;
      std::memcpy(&rows, copies + r * kGroupRows, sizeof(rows));
      rows = transpose_bits(rows);
      for (std::size_t q = 0; q < count; ++q) {
        scratch[(first + q) * kLines + r] = static_cast<std::uint8_t>(rows >> 8 * q);
      }
    }
  }
}

void add_tile(const Tile& tile, const std::uint8_t* scratch, std::size_t keys, std::uint8_t* sums) {
  auto* totals = reinterpret_cast<std::uint64_t*>(sums);
  for (std::size_t block = 0; block < tile.blocks; ++block) {
    for (std::size_t key = 0; key < keys; ++key) {
      add_block(tile.block(block), tile.lines, scratch + key * kLines,
                totals + (key * tile.blocks + block) * kWords);
    }
  }
}

constexpr BitProduct kBitProduct = {1,        scratch_bytes, lay_out, copy_shares, lay_out_copies,
                                    add_tile, read_parities};

}  // namespace portable
}  // namespace nescio::pir
