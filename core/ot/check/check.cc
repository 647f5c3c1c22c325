#include "ot/check/check.h"

#include <algorithm>
#include <array>
#include <vector>

#include "ot/stream.h"

namespace nescio::ot {
namespace {

const CheckKernels& check_kernels(Tier tier) { return NESCIO_PICK(tier, kCheckKernels); }

Block shifted(Block a, unsigned by) { return {a.lo << by, a.hi << by | a.lo >> (64 - by)}; }

/// Reduces modulo X^128 + X^7 + X^2 + X + 1. The bits that the shifts push out have degree below 7
/// and are reduced once more.
Block reduced(Product p) {
  const std::uint64_t out = p.high.hi >> 63 ^ p.high.hi >> 62 ^ p.high.hi >> 57;
  const Block folded = p.high ^ shifted(p.high, 1) ^ shifted(p.high, 2) ^ shifted(p.high, 7);
  return p.low ^ folded ^ Block{out ^ out << 1 ^ out << 2 ^ out << 7, 0};
}

void add(Product& sum, const Product& p) {
  sum.low ^= p.low;
  sum.high ^= p.high;
}

}  // namespace

Block chi_sum(std::span<const Block> leaves, const std::uint8_t chi_seed[16], ThreadPool& pool,
              Tier tier) {
  constexpr std::size_t kTaskRows = 64;  // per task
  const CheckKernels& kernels = check_kernels(tier);
  const auto encrypt = prg::aes128::cipher_of(tier).encrypt;
  const prg::aes128::RoundKeys keys = public_round_keys(chi_seed);
  std::array<Block, kChiRow> factors;
  for (std::size_t k = 0; k < kChiRow; ++k) factors[k] = {k, 0};
  encrypt(keys, factors.data(), kChiRow, factors.data());
  const std::size_t rows = (leaves.size() + kChiRow - 1) / kChiRow;
  std::vector<Product> sums(pool.threads(), Product{});
  pool.run((rows + kTaskRows - 1) / kTaskRows, [&](std::size_t task, unsigned worker) {
    std::array<Block, kTaskRows> row_factors;
    for (std::size_t j = 0; j < kTaskRows; ++j) row_factors[j] = {task * kTaskRows + j, 1};
    encrypt(keys, row_factors.data(), kTaskRows, row_factors.data());
    for (std::size_t j = 0; j < kTaskRows && task * kTaskRows + j < rows; ++j) {
      const auto row = leaves.subspan((task * kTaskRows + j) * kChiRow);
      const std::size_t count = std::min(kChiRow, row.size());
      const Block sum = reduced(kernels.sum_products(factors.data(), row.data(), count));
      add(sums[worker], kernels.multiply(row_factors[j], sum));
    }
  });
  Product total{};
  for (const Product& sum : sums) add(total, sum);
  return reduced(total);
}

void chi_at(std::span<const std::uint64_t> positions, const std::uint8_t chi_seed[16], Block* out,
            Tier tier) {
  const auto encrypt = prg::aes128::cipher_of(tier).encrypt;
  const prg::aes128::RoundKeys keys = public_round_keys(chi_seed);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    Block factors[2] = {{positions[i] % kChiRow, 0}, {positions[i] / kChiRow, 1}};
    encrypt(keys, factors, 2, factors);
    out[i] = multiply(factors[0], factors[1], tier);
  }
}

Block pack_bits(const Block* blocks) {
  Product sum{};
  for (unsigned i = 128; i-- > 0;) {
    sum.high = shifted(sum.high, 1) ^ Block { sum.low.hi >> 63, 0 };
    sum.low = shifted(sum.low, 1) ^ blocks[i];
  }
  return reduced(sum);
}

Block multiply(Block a, Block b, Tier tier) { return reduced(check_kernels(tier).multiply(a, b)); }

namespace portable {
namespace {

/// The low half of the product of two polynomials of 64 bits, by integer multiplication of every
/// fourth bit of the factors. Sums of up to 15 ones do not reach the next bit that is used, and the
/// only sum of 16 ones, at bit 60, carries out of the word (Pornin, BearSSL).
std::uint64_t multiply_low(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t kFourth = 0x1111111111111111;
  std::uint64_t product = 0;
  for (unsigned i = 0; i < 4; ++i) {
    std::uint64_t part = 0;
    for (unsigned j = 0; j < 4; ++j) {
      part ^= (a & kFourth << j) * (b & kFourth << ((i - j) % 4));
    }
    product |= part & kFourth << i;
  }
  return product;
}

std::uint64_t reversed(std::uint64_t a) {
  a = __builtin_bswap64(a);
  a = (a & 0x0F0F0F0F0F0F0F0F) << 4 | (a >> 4 & 0x0F0F0F0F0F0F0F0F);
  a = (a & 0x3333333333333333) << 2 | (a >> 2 & 0x3333333333333333);
  return (a & 0x5555555555555555) << 1 | (a >> 1 & 0x5555555555555555);
}

/// The product of two words. Its high half is the reversed low half of the product of the reversed
/// factors.
Block multiply_words(std::uint64_t a, std::uint64_t b) {
  return {multiply_low(a, b), reversed(multiply_low(reversed(a), reversed(b))) >> 1};
}

/// Karatsuba multiplication: three products of words.
Product multiply(Block a, Block b) {
  const Block low = multiply_words(a.lo, b.lo), high = multiply_words(a.hi, b.hi);
  const Block middle = multiply_words(a.lo ^ a.hi, b.lo ^ b.hi) ^ low ^ high;
  return {low ^ Block{0, middle.lo}, high ^ Block{middle.hi, 0}};
}

Product sum_products(const Block* factors, const Block* leaves, std::size_t n) {
  Product sum{};
  for (std::size_t i = 0; i < n; ++i) add(sum, multiply(factors[i], leaves[i]));
  return sum;
}

}  // namespace

const CheckKernels kCheckKernels = {multiply, sum_products};

}  // namespace portable
}  // namespace nescio::ot
