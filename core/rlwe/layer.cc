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
  SecretBuffer<std::uint64_t> numbers{kDegree}, masked{kDegree};

  Row row(std::size_t k) { return rows.data() + k * kDegree; }
};

/// The bits of a result in a word.
std::uint32_t mask_of(const Results& results) {
  return ~std::uint32_t{0} >> (kMessageBits - results.bits());
}

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

/// A ciphertext of a message.
struct Input {
  const Ciphertexts* message;
  std::size_t number;
};

/// The ciphertexts of all tiles, in their order.
std::vector<Input> inputs_of(std::span<const Ciphertexts* const> messages, std::size_t tiles) {
  std::vector<Input> inputs;
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    for (const Ciphertexts* message : messages) {
      const std::size_t each = message->count() / tiles;
      for (std::size_t k = 0; k < each; ++k) inputs.push_back({message, tile * each + k});
    }
  }
  return inputs;
}

/// The server's side of an answer.
class Evaluator {
 public:
  Evaluator(const PublicKey& key, const Weights& weights, const Results& results,
            std::span<const Input> inputs, const Seed& seed, Tier tier)
      : key_(key),
        weights_(weights),
        results_(results),
        inputs_(inputs),
        sampler_(seed, tier),
        kernels_(kernels_of(tier)) {}

  /// Computes c0 and c1 of an output with an encryption of zero added, without an error in c0; writes
  /// c1 and the masked results. `rows` has the output's weights.
  void run(std::size_t tile, std::size_t output, const TransformedWeights& rows, Scratch& scratch,
           std::uint8_t* upper, std::uint8_t* lower, std::uint32_t* shares) const {
    const auto number = static_cast<std::uint32_t>(tile * weights_.outputs() + output);
    const ConstRow c0[2] = {scratch.row(0), scratch.row(1)};
    const ConstRow c1[2] = {scratch.row(2), scratch.row(3)};
    sampler_.ternary(number, scratch.small.data());
    for (unsigned i = 0; i < 2; ++i) add_products(tile, output, rows, i, scratch);
    sampler_.errors(number, scratch.small.data());
    for (unsigned i = 0; i < 2; ++i) {
      kernels_.add_signed(i, scratch.small.data(), scratch.row(2 + i));
    }
    kernels_.scale_to_40(c1, scratch.numbers.data());
    write_packed({scratch.numbers.data(), kDegree}, results_.bits() + kExtraBits, upper);
    kernels_.scale_to_32(c0, scratch.numbers.data());
    const auto positions = results_.of(output);
    sampler_.masks(number, positions.size(), shares);
    for (std::size_t k = 0; k < positions.size(); ++k) {
      shares[k] &= mask_of(results_);
      scratch.masked[k] = scratch.numbers[positions[k]] - shares[k];
    }
    write_packed({scratch.masked.data(), positions.size()}, results_.bits(), lower);
  }

 private:
  /// Sets rows i and 2 + i to the coefficients of c0 and c1; `small` has the ternary polynomial u of
  /// the encryption of zero.
  void add_products(std::size_t tile, std::size_t output, const TransformedWeights& rows,
                    unsigned i, Scratch& scratch) const {
    const Row u = scratch.row(4);
    kernels_.set_signed(i, scratch.small.data(), u);
    kernels_.forward(i, u);
    const auto inputs = weights_.inputs_of(output);
    std::vector<Term> terms(inputs.size() + 1);
    for (unsigned part = 0; part < 2; ++part) {
      terms[0] = {u, key_.row(part, i)};
      for (std::size_t k = 0; k < inputs.size(); ++k) {
        const Input& input = inputs_[tile * weights_.inputs() + inputs[k]];
        terms[k + 1] = {input.message->row(input.number, part, i),
                        rows.row(weights_.first(output) + k, i)};
      }
      const Row row = scratch.row(2 * part + i);
      kernels_.multiply(i, terms, row);
      kernels_.inverse(i, row);
    }
  }

  const PublicKey& key_;
  const Weights& weights_;
  const Results& results_;
  std::span<const Input> inputs_;
  Sampler sampler_;
  const Kernels& kernels_;
};

/// Writes the client's shares of an output: round(c1 s / 2^8) plus the masked results, modulo 2^bits.
void decrypt_one(const ClientKey& key, const Results& results, std::size_t output,
                 const std::uint8_t* upper, const std::uint8_t* lower, Scratch& scratch,
                 std::uint32_t* shares, const Kernels& kernels) {
  const ConstRow rows[2] = {scratch.row(0), scratch.row(1)};
  const auto positions = results.of(output);
  read_packed(upper, results.bits() + kExtraBits, {scratch.numbers.data(), kDegree});
  read_packed(lower, results.bits(), {scratch.masked.data(), positions.size()});
  for (unsigned i = 0; i < 2; ++i) {
    const Row row = scratch.row(i);
    kernels.reduce(i, scratch.numbers.data(), row);
    kernels.forward(i, row);
    const Term term = {row, key.secret(i)};
    kernels.multiply(i, {&term, 1}, row);
    kernels.inverse(i, row);
  }
  // The product of c1 < 2^40 and s has coefficients of magnitude below N 2^40 < q / 2, so that it is
  // known exactly. Without its higher bits, c1 s is right modulo 2^(bits + 8).
  kernels.center(rows, scratch.numbers.data());
  for (std::size_t k = 0; k < positions.size(); ++k) {
    constexpr std::uint64_t half = std::uint64_t{1} << (kExtraBits - 1);
    const std::uint64_t rounded = (scratch.numbers[positions[k]] + half) >> kExtraBits;
    shares[k] = static_cast<std::uint32_t>(rounded + scratch.masked[k]) & mask_of(results);
  }
}

void check_equal(const char* what, std::size_t found, std::size_t expected) {
  if (found == expected) return;
  throw Error(ErrorKind::argument, std::string(what) + ": found " + std::to_string(found) +
                                       ", expected " + std::to_string(expected) +
                                       " as the weights have");
}

/// Throws if the messages' ciphertexts are not the inputs of whole tiles.
void check_inputs(std::span<const Ciphertexts* const> messages, std::size_t tiles,
                  std::size_t expected) {
  std::size_t each = 0;
  for (const Ciphertexts* message : messages) {
    if (message == nullptr || tiles == 0 || message->count() % tiles != 0) {
      throw Error(ErrorKind::argument,
                  "ciphertexts of a message: found none or a part of a tile, "
                  "expected as many for each of " +
                      std::to_string(tiles) + " tiles");
    }
    each += message->count() / tiles;
  }
  check_equal("ciphertexts of a tile", each, expected);
}

}  // namespace

Evaluation evaluate(const PublicKey& key, const Weights& weights, const Results& results,
                    std::span<const Ciphertexts* const> messages, std::size_t tiles,
                    const Seed& seed, ThreadPool& pool, Tier tier) {
  check_equal("outputs with results", results.outputs(), weights.outputs());
  check_inputs(messages, tiles, weights.inputs());
  const std::vector<Input> inputs = inputs_of(messages, tiles);
  const std::size_t outputs = checked_product(tiles, weights.outputs());
  Evaluation out = {Buffer<std::uint8_t>(results.answer_bytes(tiles)),
                    Buffer<std::uint32_t>(checked_product(tiles, results.total()))};
  const Evaluator evaluator(key, weights, results, inputs, seed, tier);
  Workspace workspace(pool);
  const std::size_t size = upper_bytes(results.bits());
  std::uint8_t* const lower = out.answer.data() + outputs * size;
  SecretBuffer<std::uint32_t> buffer(checked_product(weights.buffer_rows(), kDegree));
  for (std::size_t begin = 0, end; begin < weights.outputs(); begin = end) {
    end = weights.block_end(begin);
    const TransformedWeights rows = weights.transformed(begin, end, buffer.data(), pool, tier);
    pool.run((end - begin) * tiles, [&](std::size_t task, unsigned worker) {
      const std::size_t output = begin + task / tiles, tile = task % tiles;
      const std::size_t first = tile * results.total() + results.first(output);
      evaluator.run(tile, output, rows, workspace.of(worker),
                    out.answer.data() + (tile * weights.outputs() + output) * size,
                    lower + tile * results.bytes() + results.first_byte(output),
                    out.shares.data() + first);
    });
  }
  return out;
}

Buffer<std::uint32_t> decrypt(const ClientKey& key, const Results& results,
                              std::span<const std::uint8_t> answer, std::size_t tiles,
                              ThreadPool& pool, Tier tier) {
  const std::size_t outputs = checked_product(tiles, results.outputs());
  const std::size_t total = checked_product(tiles, results.total());
  check_length("answer", answer.size(), results.answer_bytes(tiles));
  Buffer<std::uint32_t> shares(total);
  Workspace workspace(pool);
  const std::size_t size = upper_bytes(results.bits());
  const std::uint8_t* const lower = answer.data() + outputs * size;
  pool.run(outputs, [&](std::size_t task, unsigned worker) {
    const std::size_t tile = task / results.outputs(), output = task - tile * results.outputs();
    const std::size_t first = tile * results.total() + results.first(output);
    decrypt_one(key, results, output, answer.data() + task * size,
                lower + tile * results.bytes() + results.first_byte(output), workspace.of(worker),
                shares.data() + first, kernels_of(tier));
  });
  return shares;
}

}  // namespace nescio::rlwe
