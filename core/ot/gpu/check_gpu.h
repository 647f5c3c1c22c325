#pragma once

// What the consistency checks compute of leaves on a GPU (Yang et al., "Ferret", CCS 2020, figure 9):
// sums of products in GF(2^128), modulo X^128 + X^7 + X^2 + X + 1, bit i of a block being the
// coefficient of X^i.
//
// A GPU has no carry-less multiplication. Numbers of which every fourth bit counts have products whose
// carries do not reach the next bit that counts: at most eight ones meet there, four bits hold them.
// So sixteen products of 32 bits, four of each residue, make one over GF(2) (Pornin, "BearSSL",
// ghash_ctmul); nine of those a product of blocks (Karatsuba, twice); and what is linear, which is all
// the rest, is done once a thread, when it has added all of its leaves.

#include "ot/check/check.h"
#include "ot/gpu/threads_gpu.h"

namespace nescio::ot {

/// The product of polynomials over GF(2), in a time that depends on neither.
NESCIO_DEVICE inline std::uint64_t multiply_words(std::uint32_t a, std::uint32_t b) {
  constexpr std::uint64_t kEveryFourth = 0x1111111111111111;
  std::uint64_t product = 0;
  NESCIO_UNROLL
  for (unsigned residue = 0; residue < 4; ++residue) {
    std::uint64_t sum = 0;
    NESCIO_UNROLL
    for (unsigned i = 0; i < 4; ++i) {
      const auto x = static_cast<std::uint32_t>(a & kEveryFourth << i);
      const auto y = static_cast<std::uint32_t>(b & kEveryFourth << (residue + 4 - i) % 4);
      sum ^= std::uint64_t{x} * y;
    }
    product |= sum & kEveryFourth << residue;
  }
  return product;
}

/// Products of polynomials over GF(2), added up.
class ProductSum {
 public:
  NESCIO_DEVICE void add(Block a, Block b) {
    std::uint32_t x[kParts], y[kParts];
    split(a, x);
    split(b, y);
    NESCIO_UNROLL
    for (unsigned i = 0; i < kParts; ++i) parts_[i] ^= multiply_words(x[i], y[i]);
  }

  /// The remainder of the sum: X^128 = X^7 + X^2 + X + 1, twice.
  NESCIO_DEVICE Block reduced() const {
    const Block low = joined(parts_), high = joined(parts_ + 3);
    const Block middle = joined(parts_ + 6) ^ low ^ high;
    std::uint64_t words[4] = {low.lo, low.hi ^ middle.lo, high.lo ^ middle.hi, high.hi};
    fold(words[3], words[1], words[2]);
    fold(words[2], words[0], words[1]);
    return {words[0], words[1]};
  }

 private:
  static constexpr unsigned kParts = 9;

  /// The factors of the nine products: of the lower words, the upper words, and the sums of both, and
  /// of each the lower, the upper and their sum.
  NESCIO_DEVICE static void split(Block x, std::uint32_t* out) {
    const std::uint64_t halves[3] = {x.lo, x.hi, x.lo ^ x.hi};
    NESCIO_UNROLL
    for (unsigned i = 0; i < 3; ++i) {
      out[3 * i] = static_cast<std::uint32_t>(halves[i]);
      out[3 * i + 1] = static_cast<std::uint32_t>(halves[i] >> 32);
      out[3 * i + 2] = out[3 * i] ^ out[3 * i + 1];
    }
  }

  /// A product of 64 bits each from three of 32.
  NESCIO_DEVICE static Block joined(const std::uint64_t* parts) {
    const std::uint64_t middle = parts[2] ^ parts[0] ^ parts[1];
    return {parts[0] ^ middle << 32, parts[1] ^ middle >> 32};
  }

  NESCIO_DEVICE static void fold(std::uint64_t high, std::uint64_t& low, std::uint64_t& next) {
    low ^= high ^ high << 1 ^ high << 2 ^ high << 7;
    next ^= high >> 63 ^ high >> 62 ^ high >> 57;
  }

  std::uint64_t parts_[kParts] = {};
};

/// A stretch of the coefficients' factors: AES of {first, half}, {first + 1, half}, ...
struct ChiFactors : AesKernel {
  prg::AesColumns keys;
  std::uint64_t first;
  std::uint64_t half;
  Block* out;

  template <class B>
  NESCIO_DEVICE void operator()(B& block) const {
    const prg::AesGpu cipher = aes(block);
    for_each_item(block, tiles,
                  [&](std::uint64_t i) { out[i] = cipher.encrypt(keys, {first + i, half}); });
  }
};

/// The sum of chi[first + i] * leaves[i]. A tile is as long as a row: all leaves of a thread have the
/// same first factor, which is multiplied with once, when they are summed under those of their rows.
struct ChiSum : AesKernel {
  static_assert(kAesThreads == kChiRow);

  const Block* leaves;
  std::uint64_t first;  ///< number of the first of them
  const Block* factors;
  const Block* rows;   ///< the second factors, from that of the first leaf's row on
  std::uint32_t* sum;  ///< four words, zero before

  std::size_t shared_bytes() const { return kXorBytes; }

  template <class B>
  NESCIO_DEVICE void operator()(B& block) const {
    const std::uint64_t inside = first % kChiRow + block.thread();
    ProductSum under_rows, total;
    for_each_item(block, tiles, [&](std::uint64_t i) {
      under_rows.add(rows[(first % kChiRow + i) / kChiRow], leaves[i]);
    });
    total.add(factors[inside % kChiRow], under_rows.reduced());
    xor_threads(block, total.reduced(), reinterpret_cast<std::uint32_t*>(block.shared()), sum);
  }
};

/// The coefficients at some positions: a thread a position.
struct ChiAt : AesKernel {
  prg::AesColumns keys;
  const std::uint64_t* positions;
  Block* out;

  template <class B>
  NESCIO_DEVICE void operator()(B& block) const {
    const prg::AesGpu cipher = aes(block);
    for_each_item(block, tiles, [&](std::uint64_t i) {
      const std::uint64_t place = positions[i];
      ProductSum chi;
      chi.add(cipher.encrypt(keys, {place % kChiRow, 0}),
              cipher.encrypt(keys, {place / kChiRow, 1}));
      out[i] = chi.reduced();
    });
  }
};

}  // namespace nescio::ot
