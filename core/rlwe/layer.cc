#include "rlwe/layer.h"

#include <cstring>
#include <memory>
#include <string>

#include "base/error.h"
#include "rlwe/messages.h"

namespace nescio::rlwe {
namespace {

/// Memory of one thread.
struct Scratch {
  SecretBuffer<std::int32_t> small{kDegree};
  SecretBuffer<std::uint32_t> rows{5 * kDegree};
  SecretBuffer<std::uint64_t> numbers{kDegree};

  Row row(std::size_t k) { return rows.data() + k * kDegree; }
};

/// The memory of a pool's workers, allocated by those that get a task.
class Workspace {
 public:
  explicit Workspace(const ThreadPool& pool) : scratch_(pool.threads()) {}

  Scratch& of(unsigned worker) {
    if (!scratch_[worker]) scratch_[worker] = std::make_unique<Scratch>();
    return *scratch_[worker];
  }

 private:
  std::vector<std::unique_ptr<Scratch>> scratch_;
};

/// The server's side of an answer.
class Evaluator {
 public:
  Evaluator(const PublicKey& key, const Weights& weights, const Results& results,
            const Ciphertexts& inputs, const Seed& seed, Tier tier)
      : key_(key),
        weights_(weights),
        results_(results),
        inputs_(inputs),
        sampler_(seed, tier),
        kernels_(kernels_of(tier)) {}

  /// Computes c0 and c1 of an output with an encryption of zero added, without an error in c0; writes
  /// c1 and the masked results.
  void run(std::size_t tile, std::size_t output, Scratch& scratch, std::uint8_t* upper,
           std::uint8_t* lower, std::uint32_t* shares) const {
    const auto number = static_cast<std::uint32_t>(tile * weights_.outputs() + output);
    const ConstRow c0[2] = {scratch.row(0), scratch.row(1)};
    const ConstRow c1[2] = {scratch.row(2), scratch.row(3)};
    sampler_.ternary(number, scratch.small.data());
    for (unsigned i = 0; i < 2; ++i) add_products(tile, output, i, scratch);
    sampler_.errors(number, scratch.small.data());
    for (unsigned i = 0; i < 2; ++i) {
      kernels_.add_signed(i, scratch.small.data(), scratch.row(2 + i));
    }
    kernels_.scale_to_40(c1, scratch.numbers.data());
    write_upper(scratch.numbers.data(), upper);
    kernels_.scale_to_32(c0, scratch.numbers.data());
    const auto positions = results_.of(output);
    sampler_.masks(number, positions.size(), shares);
    for (std::size_t k = 0; k < positions.size(); ++k) {
      const auto rounded = static_cast<std::uint32_t>(scratch.numbers[positions[k]]);
      const std::uint32_t masked = rounded - shares[k];
      std::memcpy(lower + k * kResultBytes, &masked, kResultBytes);
    }
  }

 private:
  /// Sets rows i and 2 + i to the coefficients of c0 and c1; `small` has the ternary polynomial u of
  /// the encryption of zero.
  void add_products(std::size_t tile, std::size_t output, unsigned i, Scratch& scratch) const {
    const Row u = scratch.row(4);
    kernels_.set_signed(i, scratch.small.data(), u);
    kernels_.forward(i, u);
    std::vector<Term> terms(weights_.inputs() + 1);
    for (unsigned part = 0; part < 2; ++part) {
      terms[0] = {u, key_.row(part, i)};
      for (std::size_t g = 0; g < weights_.inputs(); ++g) {
        terms[g + 1] = {inputs_.row(tile * weights_.inputs() + g, part, i),
                        weights_.row(output, g, i)};
      }
      const Row row = scratch.row(2 * part + i);
      kernels_.multiply(i, terms, row);
      kernels_.inverse(i, row);
    }
  }

  const PublicKey& key_;
  const Weights& weights_;
  const Results& results_;
  const Ciphertexts& inputs_;
  Sampler sampler_;
  const Kernels& kernels_;
};

/// Writes the client's shares of an output: round(c1 s / 2^8) in Z_2^32, plus the masked results.
void decrypt_one(const ClientKey& key, std::span<const std::uint32_t> positions,
                 const std::uint8_t* upper, const std::uint8_t* lower, Scratch& scratch,
                 std::uint32_t* shares, const Kernels& kernels) {
  const ConstRow rows[2] = {scratch.row(0), scratch.row(1)};
  read_upper(upper, scratch.numbers.data());
  for (unsigned i = 0; i < 2; ++i) {
    const Row row = scratch.row(i);
    kernels.reduce(i, scratch.numbers.data(), row);
    kernels.forward(i, row);
    const Term term = {row, key.secret(i)};
    kernels.multiply(i, {&term, 1}, row);
    kernels.inverse(i, row);
  }
  // The product of c1 < 2^40 and s has coefficients of magnitude below N 2^40 < q / 2, so that it is
  // known exactly.
  kernels.center(rows, scratch.numbers.data());
  for (std::size_t k = 0; k < positions.size(); ++k) {
    std::uint32_t masked = 0;
    std::memcpy(&masked, lower + k * kResultBytes, kResultBytes);
    shares[k] = static_cast<std::uint32_t>((scratch.numbers[positions[k]] + 128) >> 8) + masked;
  }
}

void check_outputs(const Results& results, std::size_t outputs) {
  if (results.outputs() == outputs) return;
  throw Error(ErrorKind::argument, "outputs with results: found " +
                                       std::to_string(results.outputs()) + ", expected " +
                                       std::to_string(outputs) + " as the weights have");
}

}  // namespace

Evaluation evaluate(const PublicKey& key, const Weights& weights, const Results& results,
                    std::span<const std::uint8_t> ciphertexts, std::size_t tiles, const Seed& seed,
                    ThreadPool& pool, Tier tier) {
  check_outputs(results, weights.outputs());
  const Ciphertexts inputs("ciphertexts", ciphertexts, checked_product(tiles, weights.inputs()),
                           pool, tier);
  const std::size_t outputs = checked_product(tiles, weights.outputs());
  const std::size_t total = checked_product(tiles, results.total());
  Evaluation out = {Buffer<std::uint8_t>(answer_bytes(outputs, total)),
                    Buffer<std::uint32_t>(total)};
  const Evaluator evaluator(key, weights, results, inputs, seed, tier);
  Workspace workspace(pool);
  std::uint8_t* const lower = out.answer.data() + outputs * kUpperBytes;
  pool.run(outputs, [&](std::size_t task, unsigned worker) {
    const std::size_t tile = task / weights.outputs(), output = task - tile * weights.outputs();
    const std::size_t first = tile * results.total() + results.first(output);
    evaluator.run(tile, output, workspace.of(worker), out.answer.data() + task * kUpperBytes,
                  lower + first * kResultBytes, out.shares.data() + first);
  });
  return out;
}

Buffer<std::uint32_t> decrypt(const ClientKey& key, const Results& results,
                              std::span<const std::uint8_t> answer, std::size_t tiles,
                              ThreadPool& pool, Tier tier) {
  const std::size_t outputs = checked_product(tiles, results.outputs());
  const std::size_t total = checked_product(tiles, results.total());
  check_length("answer", answer.size(), answer_bytes(outputs, total));
  Buffer<std::uint32_t> shares(total);
  Workspace workspace(pool);
  const std::uint8_t* const lower = answer.data() + outputs * kUpperBytes;
  pool.run(outputs, [&](std::size_t task, unsigned worker) {
    const std::size_t tile = task / results.outputs(), output = task - tile * results.outputs();
    const std::size_t first = tile * results.total() + results.first(output);
    decrypt_one(key, results.of(output), answer.data() + task * kUpperBytes,
                lower + first * kResultBytes, workspace.of(worker), shares.data() + first,
                kernels_of(tier));
  });
  return shares;
}

}  // namespace nescio::rlwe
