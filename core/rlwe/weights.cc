#include <algorithm>
#include <numeric>
#include <string>

#include "base/error.h"
#include "base/secret.h"
#include "rlwe/layer.h"
#include "rlwe/messages.h"

namespace nescio::rlwe {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& found,
                         const std::string& expected) {
  throw Error(ErrorKind::argument, what + ": found " + found + ", expected " + expected);
}

/// Throws if the weights of an output exceed the bounds. Only this fact becomes public.
void check_norms(const std::int32_t* weights, std::size_t count) {
  std::uint64_t largest = 0, magnitudes = 0, squares = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const std::int64_t x = weights[k], sign = x >> 63;
    largest |= static_cast<std::uint64_t>((x ^ sign) - sign);
  }
  bool valid = declassify(largest) < 2 * kMaxNorm;  // squares of others could overflow
  for (std::size_t k = 0; k < count && valid; ++k) {
    const std::int64_t x = weights[k], sign = x >> 63;
    magnitudes += static_cast<std::uint64_t>((x ^ sign) - sign);
    squares += static_cast<std::uint64_t>(x * x);
  }
  valid = declassify(valid && magnitudes <= kMaxMagnitudes && squares <= kMaxNorm * kMaxNorm);
  if (valid) return;
  refuse("weights of an output polynomial", "too large ones",
         "a sum of magnitudes up to 2^25 and a norm up to 2^19; use fewer bits a weight");
}

}  // namespace

Results::Results(std::span<const std::uint32_t> counts, std::span<const std::uint32_t> positions,
                 unsigned bits)
    : bits_(bits), positions_(positions.begin(), positions.end()) {
  if (bits < 1 || bits > kMessageBits) refuse("bits of a result", std::to_string(bits), "1 to 32");
  std::size_t end = 0, bytes = 0;
  for (const std::uint32_t count : counts) {
    ends_.push_back(end += count);
    bytes_.push_back(bytes += packed_bytes(count, bits));
  }
  if (end != positions.size()) {
    refuse("positions of results", std::to_string(positions.size()), std::to_string(end));
  }
  for (const std::uint32_t position : positions) {
    if (position >= kDegree) {
      refuse("position of a result", std::to_string(position),
             "less than " + std::to_string(kDegree));
    }
  }
}

std::size_t Results::answer_bytes(std::size_t tiles) const {
  return checked_product(checked_product(tiles, outputs()), upper_bytes(bits_)) +
         checked_product(tiles, bytes());
}

Weights::Weights(const std::int32_t* coefficients, std::size_t outputs, std::size_t inputs,
                 ThreadPool& pool, Tier tier)
    : outputs_(outputs),
      inputs_(inputs),
      rows_(checked_product(checked_product(outputs, inputs), 2 * kDegree)) {
  if (outputs == 0 || inputs == 0) refuse("weights", "no polynomial", "at least one");
  for (std::size_t o = 0; o < outputs; ++o) {
    check_norms(coefficients + o * inputs * kDegree, inputs * kDegree);
  }
  const Kernels& kernels = kernels_of(tier);
  pool.run(outputs * inputs, [&](std::size_t k, unsigned) {
    for (unsigned i = 0; i < 2; ++i) {
      const Row row = rows_.data() + (2 * k + i) * kDegree;
      kernels.set_signed(i, coefficients + k * kDegree, row);
      kernels.forward(i, row);
      kernels.to_montgomery(i, row);
    }
  });
}

}  // namespace nescio::rlwe
