#pragma once

// The arithmetic of the consistency check (Yang et al., "Ferret", CCS 2020, figure 9) on a GPU:
// sums of products in GF(2^128), modulo X^128 + X^7 + X^2 + X + 1. Bit i of a block is the
// coefficient of X^i.
//
// A GPU has no carry-less multiplication. If only every fourth bit of two 32-bit factors is used,
// the carries of their integer product do not reach the next used bit: at most eight ones are added
// there, which fit in four bits. Sixteen such products, four for each residue of the bit number,
// give one product over GF(2) (Pornin, "BearSSL", ghash_ctmul). Nine of those give a product of
// blocks (Karatsuba, twice). The remaining steps are linear, and a thread does them once, on its
// sum.

#include "ot/check/check.h"
#include "ot/gpu/threads_gpu.h"

namespace nescio::ot {

/// The product of two polynomials over GF(2), in constant time.
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

/// A sum of products of polynomials over GF(2).
class ProductSum {
 public:
  NESCIO_DEVICE void add(Block a, Block b) {
    std::uint32_t x[kParts], y[kParts];
    split(a, x);
    split(b, y);
    NESCIO_UNROLL
    for (unsigned i = 0; i < kParts; ++i) parts_[i] ^= multiply_words(x[i], y[i]);
  }

  /// The sum modulo X^128 + X^7 + X^2 + X + 1, reduced a word at a time.
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

  /// The nine factors of 32 bits: the lower half of a block, its upper half and their XOR, each
  /// again as lower half, upper half and their XOR.
  NESCIO_DEVICE static void split(Block x, std::uint32_t* out) {
    const std::uint64_t halves[3] = {x.lo, x.hi, x.lo ^ x.hi};
    NESCIO_UNROLL
    for (unsigned i = 0; i < 3; ++i) {
      out[3 * i] = static_cast<std::uint32_t>(halves[i]);
      out[3 * i + 1] = static_cast<std::uint32_t>(halves[i] >> 32);
      out[3 * i + 2] = out[3 * i] ^ out[3 * i + 1];
    }
  }

  /// A product of 64-bit factors from three products of 32-bit factors.
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

/// Computes consecutive factors of the coefficients: AES of {first, half}, {first + 1, half}, ...
struct ChiFactors : AesKernel {
  prg::AesColumns keys;
  std::uint64_t first;
  std::uint64_t half;
  Block* out;

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const prg::AesGpu cipher = aes(block);
    for_each_item(block, tiles,
                  [&](std::uint64_t i) { out[i] = cipher.encrypt(keys, {first + i, half}); });
  }
};

/// Computes the sum of chi[first + i] * leaves[i]. A tile has the length of a row, so that all
/// leaves of a thread have the same first factor. A thread sums its leaves times the factors of
/// their rows, then multiplies by that first factor once.
struct ChiSum : AesKernel {
  static_assert(kAesThreads == kChiRow);

  const Block* leaves;
  std::uint64_t first;  ///< index of the first leaf
  const Block* factors;
  const Block* rows;   ///< the second factors, starting at the row of the first leaf
  std::uint32_t* sum;  ///< four words; the caller sets them to zero

  std::size_t shared_bytes() const { return kXorScratchBytes; }

  template <gpu::ThreadBlock B>
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

/// Computes the coefficients at given positions, one thread per position.
struct ChiAt : AesKernel {
  prg::AesColumns keys;
  const std::uint64_t* positions;
  Block* out;

  template <gpu::ThreadBlock B>
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
