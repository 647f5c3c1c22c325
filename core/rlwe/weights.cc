#include "rlwe/weights.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/secret.h"
#include "rlwe/kernels.h"

namespace nescio::rlwe {
namespace {

/// Polynomials that are transformed at once, if none are kept: their rows stay in a cache.
constexpr std::size_t kBlock = 64;

[[noreturn]] void refuse(const std::string& what, const std::string& found,
                         const std::string& expected) {
  throw Error(ErrorKind::argument, what + ": found " + found + ", expected " + expected);
}

void check_size(const char* what, std::size_t found, std::size_t expected) {
  if (found != expected) refuse(what, std::to_string(found), std::to_string(expected));
}

void check_sizes(const WeightPart& part, std::size_t outputs) {
  check_size("polynomials of weights", part.present.size(), checked_product(outputs, part.inputs));
  const auto zero = std::count(part.present.begin(), part.present.end(), std::uint8_t{0});
  const std::size_t count = part.present.size() - static_cast<std::size_t>(zero);
  check_size("weights", part.values.size(), checked_product(count, part.positions.size()));
  for (const std::uint32_t position : part.positions) {
    if (position >= kDegree) {
      refuse("position of a weight", std::to_string(position),
             "less than " + std::to_string(kDegree));
    }
  }
}

/// Sums over the weights of an output, in constant time. Squares of large weights could overflow.
struct Norms {
  std::uint64_t largest = 0, magnitudes = 0, squares = 0;

  void add(std::span<const std::int32_t> weights) {
    for (const std::int64_t x : weights) {
      const std::int64_t sign = x >> 63;
      const auto magnitude = static_cast<std::uint64_t>((x ^ sign) - sign);
      largest |= magnitude;
      magnitudes += magnitude;
      squares += magnitude * magnitude;
    }
  }
  bool valid() const {
    return (largest < 2 * kMaxNorm) & (magnitudes <= kMaxMagnitudes) &
           (squares <= kMaxNorm * kMaxNorm);
  }
};

}  // namespace

Weights::Weights(std::span<const WeightPart> parts, std::size_t outputs, bool keep_transformed,
                 ThreadPool& pool, Tier tier)
    : ends_(outputs) {
  Values values;
  for (const WeightPart& part : parts) {
    check_sizes(part, outputs);
    inputs_ += part.inputs;
    positions_.emplace_back(part.positions.begin(), part.positions.end());
    values.push_back(part.values.data());
  }
  if (outputs == 0 || inputs_ == 0) refuse("weights", "no polynomial", "at least one");
  add_polynomials(parts);
  check_norms(values);
  if (keep_transformed) {
    rows_.emplace(checked_product(input_.size(), 2 * kDegree));
    transform(0, input_.size(), values, rows_->data(), pool, tier);
  } else {
    copy(parts);
  }
}

void Weights::add_polynomials(std::span<const WeightPart> parts) {
  std::vector<std::uint32_t> numbers(parts.size());
  for (std::size_t output = 0; output < ends_.size(); ++output) {
    std::uint32_t input = 0;
    for (std::uint32_t p = 0; p < parts.size(); ++p) {
      const auto own = parts[p].present.subspan(output * parts[p].inputs, parts[p].inputs);
      for (std::size_t g = 0; g < own.size(); ++g, ++input) {
        if (own[g] == 0) continue;
        input_.push_back(input);
        part_.push_back(p);
        number_.push_back(numbers[p]++);
      }
    }
    ends_[output] = input_.size();
  }
}

/// Throws if the weights of an output exceed the bounds. Only this fact becomes public.
void Weights::check_norms(const Values& values) const {
  for (std::size_t output = 0; output < ends_.size(); ++output) {
    Norms norms;
    for (std::size_t k = first(output); k < ends_[output]; ++k) norms.add(coefficients(k, values));
    if (declassify(norms.valid())) continue;
    refuse("weights of an output polynomial", "too large ones",
           "a sum of magnitudes up to 2^25 and a norm up to 2^19; use fewer bits a weight");
  }
}

void Weights::copy(std::span<const WeightPart> parts) {
  std::size_t size = 0;
  for (const WeightPart& part : parts) size += part.values.size();
  values_.emplace(size);
  std::int32_t* to = values_->data();
  for (const WeightPart& part : parts) {
    copied_.push_back(to);
    to = std::copy(part.values.begin(), part.values.end(), to);
  }
}

std::size_t Weights::bytes() const {
  return rows_ ? rows_->size() * sizeof(std::uint32_t) : values_->size() * sizeof(std::int32_t);
}

std::size_t Weights::block_end(std::size_t output) const {
  if (rows_) return outputs();
  const std::size_t most = first(output) + kBlock;
  const auto end = std::upper_bound(ends_.begin(), ends_.end(), most);
  return std::max(output + 1, static_cast<std::size_t>(end - ends_.begin()));
}

std::size_t Weights::buffer_rows() const {
  if (rows_) return 0;
  std::size_t most = 0;
  for (std::size_t output = 0, end; output < outputs(); output = end) {
    end = block_end(output);
    most = std::max(most, ends_[end - 1] - first(output));
  }
  return 2 * most;
}

TransformedWeights Weights::transformed(std::size_t output, std::size_t end, Row buffer,
                                        ThreadPool& pool, Tier tier) const {
  if (rows_) return {rows_->data(), 0};
  transform(first(output), ends_[end - 1], copied_, buffer, pool, tier);
  return {buffer, first(output)};
}

/// Writes the NTTs of polynomials `begin` to `end`.
void Weights::transform(std::size_t begin, std::size_t end, const Values& values, Row rows,
                        ThreadPool& pool, Tier tier) const {
  const Kernels& kernels = kernels_of(tier);
  SecretBuffer<std::int32_t> scratch(pool.threads() * kDegree);
  pool.run(end - begin, [&](std::size_t task, unsigned worker) {
    const std::vector<std::uint32_t>& positions = positions_[part_[begin + task]];
    const auto own = coefficients(begin + task, values);
    std::int32_t* const polynomial = scratch.data() + worker * kDegree;
    std::memset(polynomial, 0, kDegree * sizeof(*polynomial));
    for (std::size_t c = 0; c < own.size(); ++c) polynomial[positions[c]] = own[c];
    for (unsigned i = 0; i < 2; ++i) {
      const Row row = rows + (2 * task + i) * kDegree;
      kernels.set_signed(i, polynomial, row);
      kernels.forward(i, row);
      kernels.to_montgomery(i, row);
    }
  });
}

}  // namespace nescio::rlwe
