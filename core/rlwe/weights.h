#pragma once

// The polynomials of a product's weights. Their coefficients are zero but at some positions, and some
// polynomials are zero as a whole; both facts are public. The other coefficients are secret.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "base/thread_pool.h"
#include "rlwe/keys.h"

namespace nescio::rlwe {

/// Bounds of an output's weights, all polynomials together: the sum of magnitudes, and the square root
/// of the sum of squares. Within them a result is wrong by more than 1 with a probability below 2^-68
/// (docs/rlwe-parameters.md).
inline constexpr std::uint64_t kMaxMagnitudes = std::uint64_t{1} << 25;
inline constexpr std::uint64_t kMaxNorm = std::uint64_t{1} << 19;

/// The polynomials of some inputs, whose coefficients are at the same positions.
struct WeightPart {
  std::size_t inputs;
  std::span<const std::uint32_t> positions;
  std::span<const std::uint8_t> present;  ///< (outputs, inputs): 0 for a polynomial that is zero
  std::span<const std::int32_t> values;   ///< (polynomials that are not zero, positions)
};

/// The NTTs of some outputs' polynomials, in Montgomery's form.
class TransformedWeights {
 public:
  TransformedWeights(ConstRow rows, std::size_t first) : rows_(rows), first_(first) {}

  /// Polynomial k of all, modulo p_i.
  ConstRow row(std::size_t k, unsigned i) const { return rows_ + (2 * (k - first_) + i) * kDegree; }

 private:
  ConstRow rows_;
  std::size_t first_;
};

/// The weights of a product. Threads may share them.
class Weights {
 public:
  /// Takes the weights of all parts' inputs, one part after the other. They are kept transformed, in
  /// 8 N bytes a polynomial, or else as coefficients, which `transformed` transforms each time. Throws
  /// Error(argument) if there are none, sizes do not fit, a position is not below N, or an output
  /// exceeds the bounds.
  Weights(std::span<const WeightPart> parts, std::size_t outputs, bool keep_transformed,
          ThreadPool& pool, Tier tier);

  std::size_t outputs() const { return ends_.size(); }
  std::size_t inputs() const { return inputs_; }

  /// The bytes of the weights that are kept.
  std::size_t bytes() const;

  /// The number of an output's first polynomial, and the inputs of those that are not zero.
  std::size_t first(std::size_t output) const { return output == 0 ? 0 : ends_[output - 1]; }
  std::span<const std::uint32_t> inputs_of(std::size_t output) const {
    return std::span(input_).subspan(first(output), ends_[output] - first(output));
  }

  /// The end of a block of outputs from `output` on: all, or as many as a small buffer has room for.
  std::size_t block_end(std::size_t output) const;

  /// The rows of the buffer that blocks need; 0 if the weights are kept transformed.
  std::size_t buffer_rows() const;

  /// Transforms a block of outputs into `buffer`, unless they are kept so.
  TransformedWeights transformed(std::size_t output, std::size_t end, Row buffer, ThreadPool& pool,
                                 Tier tier) const;

 private:
  using Values = std::vector<const std::int32_t*>;  // the first value of each part

  void add_polynomials(std::span<const WeightPart> parts);
  void copy(std::span<const WeightPart> parts);
  void check_norms(const Values& values) const;
  void transform(std::size_t begin, std::size_t end, const Values& values, Row rows,
                 ThreadPool& pool, Tier tier) const;
  std::span<const std::int32_t> coefficients(std::size_t k, const Values& values) const {
    const std::size_t size = positions_[part_[k]].size();
    return {values[part_[k]] + number_[k] * size, size};
  }

  std::size_t inputs_ = 0;
  std::vector<std::vector<std::uint32_t>> positions_;  // of each part
  std::vector<std::size_t> ends_;                      // of the polynomials of each output
  std::vector<std::uint32_t> input_, part_, number_;   // of each polynomial; the number in its part
  std::optional<SecretBuffer<std::int32_t>> values_;   // of all parts, unless rows are kept
  Values copied_;
  std::optional<SecretBuffer<std::uint32_t>> rows_;
};

}  // namespace nescio::rlwe
