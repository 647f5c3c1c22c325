#include "ot/codes/quasi_cyclic.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ot/codes/additive_fft.h"
#include "ot/stream.h"

namespace nescio::ot {
namespace {

constexpr std::uint8_t kMultiplierKey = 4;
constexpr std::size_t kMaxBlocks = std::size_t{1} << 31;
constexpr std::size_t kRowSize = std::size_t{1} << kRowBits;
constexpr unsigned kMinLevels = kLeafBits + 1;
/// If the product has at most 1/kExcessPart more coefficients than a transform has points, they are
/// computed by a separate small product, which costs less than a transform of twice the size.
constexpr std::size_t kExcessPart = 8;
/// Blocks that one task copies or adds.
constexpr std::size_t kTaskBlocks = std::size_t{1} << 14;

/// The coefficients of the polynomial a of the code, 32 bits per word.
std::vector<std::uint32_t> multiplier_bits(const std::uint8_t code_seed[16], std::size_t p,
                                           Tier tier) {
  std::array<std::uint8_t, 16> key;
  std::memcpy(key.data(), code_seed, key.size());
  key[0] ^= kMultiplierKey;
  std::vector<std::uint32_t> words((p + 31) / 32);
  WordStream(key.data(), tier).words(0, words.size(), words.data());
  return words;
}

void parallel_for(ThreadPool& pool, std::size_t count,
                  const std::function<void(std::size_t begin, std::size_t end)>& work) {
  pool.run((count + kTaskBlocks - 1) / kTaskBlocks, [&](std::size_t task, unsigned) {
    work(task * kTaskBlocks, std::min(count, (task + 1) * kTaskBlocks));
  });
}

/// The product of a polynomial of blocks and a polynomial of bits, of p coefficients each.
///
/// Its values at 2^m points determine it modulo s_m, of degree 2^m. If p is just above a power of
/// two, the 2p - 1 coefficients are slightly more than 2^m. Then a separate product of the highest
/// coefficients of both factors gives the coefficients from 2^m on, and their contributions modulo
/// s_m are removed from the others. This takes few additions, because s_m = sum_j C(m, j) x^(2^j)
/// mod 2.
class Product {
 public:
  Product(const Block* e, std::size_t p, const std::vector<std::uint32_t>& bits, ThreadPool& pool,
          Tier tier, QuasiCyclicScratch& scratch)
      : e_(e),
        p_(p),
        bits_(bits),
        pool_(pool),
        tier_(tier),
        fft_(additive_fft(tier)),
        m_(levels(p)),
        row_bits_(std::min(m_, kRowBits)),
        rows_(std::size_t{1} << (m_ - row_bits_)),
        scratch_(scratch.acquire(std::size_t{1} << m_)),
        f_(scratch_.product),
        quotient_(2 * p - 1 > f_.size() ? 2 * p - 1 - f_.size() : 0),
        twiddles_(std::make_unique<Twiddles>()) {
    make_twiddles(static_cast<std::uint32_t>(std::min<std::size_t>(rows_, 4)), *twiddles_);
    load_blocks();
    multiply();
    add_quotient();
  }

  /// Coefficient i; zero for i beyond the degree.
  Block operator[](std::size_t i) const {
    if (i < f_.size()) return f_[i];
    return i - f_.size() < quotient_.size() ? quotient_[i - f_.size()] : Block{0, 0};
  }

 private:
  static unsigned levels(std::size_t p) {
    const std::size_t coefficients = 2 * p - 1;
    const auto m = static_cast<unsigned>(std::bit_width(coefficients - 1));
    if (m <= kMinLevels) return kMinLevels;
    const std::size_t half = std::size_t{1} << (m - 1);
    return coefficients - half <= half / kExcessPart ? m - 1 : m;
  }

  bool bit(std::size_t i) const { return ((bits_[i / 32] >> (i % 32)) & 1) != 0; }

  void load_blocks() {
    parallel_for(pool_, f_.size(), [this](std::size_t begin, std::size_t end) {
      const std::size_t last = std::clamp(p_, begin, end);
      std::copy(e_ + begin, e_ + last, f_.data() + begin);
      std::fill(f_.data() + last, f_.data() + end, Block{0, 0});
    });
  }

  void multiply() {
    const std::span<std::uint32_t> values = scratch_.values;
    parallel_for(pool_, values.size(), [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) values[i] = i < p_ && bit(i) ? 1 : 0;
    });
    if (rows_ > 1) {
      fft_.expand_elements(values.data(), m_, kRowBits);
      columns(reinterpret_cast<Block*>(values.data()), kRowSize / 4, false);
      fft_.expand(f_.data(), m_, kRowBits, false);
      columns(f_.data(), kRowSize, false);
    }
    multiply_rows(values.data());
    if (rows_ > 1) {
      columns(f_.data(), kRowSize, true);
      fft_.expand(f_.data(), m_, kRowBits, true);
    }
  }

  /// Transforms `width` columns of blocks, a slab of them at a time in a contiguous buffer.
  void columns(Block* f, std::size_t width, bool inverse) {
    constexpr std::size_t kSlabBlocks = std::size_t{1} << 14;
    const std::size_t slab = std::clamp<std::size_t>(kSlabBlocks / rows_, 16, 64);
    std::vector<std::unique_ptr<SecretBuffer<Block>>> slabs(pool_.threads());
    pool_.run(width / slab, [&](std::size_t task, unsigned worker) {
      if (!slabs[worker]) slabs[worker] = std::make_unique<SecretBuffer<Block>>(slab * rows_);
      Block* const scratch = slabs[worker]->data();
      Block* const from = f + task * slab;
      for (std::size_t j = 0; j < rows_; ++j)
        std::copy_n(from + j * width, slab, scratch + j * slab);
      fft_.columns(*twiddles_, scratch, m_ - row_bits_, slab, inverse);
      for (std::size_t j = 0; j < rows_; ++j)
        std::copy_n(scratch + j * slab, slab, from + j * width);
    });
  }

  /// Multiplies all rows. Rows of `values` are evaluated four at a time, as the elements of blocks.
  void multiply_rows(const std::uint32_t* values) {
    const std::size_t lanes = std::min<std::size_t>(rows_, 4), row = std::size_t{1} << row_bits_;
    pool_.run(rows_ / lanes, [&](std::size_t task, unsigned) {
      Buffer<Block> elements(row);
      const std::uint32_t* from = values + task * lanes * row;
      for (std::size_t i = 0; i < row; ++i) {
        const auto value = [&](std::size_t lane) {
          return std::uint64_t{from[lane % lanes * row + i]};
        };
        elements[i] = {value(0) | value(1) << 32, value(2) | value(3) << 32};
      }
      const auto first = static_cast<std::uint32_t>(task * lanes);
      fft_.evaluate_row(*twiddles_, elements.data(), row_bits_, first, true);
      for (std::uint32_t lane = 0; lane < lanes; ++lane) {
        fft_.multiply_row(*twiddles_, f_.data() + (first + lane) * row, row_bits_, first + lane,
                          elements.data(), lane);
      }
    });
  }

  /// Adds s_m q to f, where q is the quotient of the product by s_m. The coefficients of q are
  /// those of the product from 2^m on, because all other terms of s_m have much smaller degrees.
  void add_quotient() {
    if (quotient_.size() == 0) return;
    multiply_high();
    for (unsigned j = 0; j < m_; ++j) {
      if ((j & m_) != j) continue;  // C(m, j) is even
      for (std::size_t k = 0; k < quotient_.size(); ++k)
        f_[(std::size_t{1} << j) + k] ^= quotient_[k];
    }
  }

  /// Computes the coefficients from 2^m = 2p - 1 - t on. They are the coefficients from t - 1 on of
  /// the product of the highest t coefficients of both polynomials.
  void multiply_high() {
    const std::size_t t = quotient_.size(), first = p_ - t;
    std::vector<std::uint32_t> bits((t + 31) / 32);
    for (std::size_t i = 0; i < t; ++i) {
      bits[i / 32] |= static_cast<std::uint32_t>(bit(first + i)) << (i % 32);
    }
    QuasiCyclicScratch scratch;
    const Product product(e_ + first, t, bits, pool_, tier_, scratch);
    for (std::size_t k = 0; k < t; ++k) quotient_[k] = product[t - 1 + k];
  }

  const Block* e_;
  std::size_t p_;
  const std::vector<std::uint32_t>& bits_;
  ThreadPool& pool_;
  Tier tier_;
  const AdditiveFft& fft_;
  unsigned m_, row_bits_;
  std::size_t rows_;
  QuasiCyclicScratch::Lease scratch_;
  std::span<Block> f_;
  SecretBuffer<Block> quotient_;
  std::unique_ptr<Twiddles> twiddles_;
};

void check(std::size_t blocks, std::size_t count) {
  if (blocks == 0 || blocks % 2 != 0 || blocks > kMaxBlocks) {
    throw Error(ErrorKind::argument, "noise: found " + std::to_string(blocks) +
                                         " blocks, expected an even number from 2 to 2^31");
  }
  if (count > blocks / 2) {
    throw Error(ErrorKind::argument, "count: found " + std::to_string(count) +
                                         ", expected at most " + std::to_string(blocks / 2));
  }
}

}  // namespace

QuasiCyclicScratch::Lease QuasiCyclicScratch::acquire(std::size_t points) {
  std::unique_lock lock(mutex_);
  if (!product_ || product_->size() != points) {
    product_.reset();
    values_.reset();
    product_ = std::make_unique<SecretBuffer<Block>>(points);
    values_ = std::make_unique<Buffer<std::uint32_t>>(points);
  }
  return {std::move(lock), {product_->data(), points}, {values_->data(), points}};
}

Buffer<Block> encode_quasi_cyclic(std::span<const Block> noise, const std::uint8_t code_seed[16],
                                  std::size_t count, ThreadPool& pool, Tier tier,
                                  QuasiCyclicScratch& scratch) {
  check(noise.size(), count);
  const std::size_t p = noise.size() / 2;
  const std::vector<std::uint32_t> bits = multiplier_bits(code_seed, p, tier);
  const Product product(noise.data() + p, p, bits, pool, tier, scratch);
  Buffer<Block> out(count);
  parallel_for(pool, count, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) out[i] = noise[i] ^ product[i] ^ product[i + p];
  });
  return out;
}

}  // namespace nescio::ot
