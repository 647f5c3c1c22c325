#pragma once

// Products of a layer's weights and a client's ciphertexts. Output o of a tile is the sum, over the
// inputs g, of weights (o, g) times ciphertext g of the tile, in Z_2^32[X]/(X^N + 1). Some coefficients
// of each output are results, of which both parties get shares modulo 2^bits.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "base/thread_pool.h"
#include "rlwe/keys.h"
#include "rlwe/weights.h"

namespace nescio::rlwe {

/// The positions of the results in each output of a tile, and the bits of a result; public.
class Results {
 public:
  /// `counts` has the number of results of each output, `positions` those of all outputs. Throws
  /// Error(argument) if the counts do not add up, a position is not below N, or `bits` is not 1 to 32.
  Results(std::span<const std::uint32_t> counts, std::span<const std::uint32_t> positions,
          unsigned bits = kMessageBits);

  unsigned bits() const { return bits_; }
  std::size_t outputs() const { return ends_.size(); }
  std::size_t total() const { return positions_.size(); }
  std::size_t first(std::size_t output) const { return output == 0 ? 0 : ends_[output - 1]; }
  std::span<const std::uint32_t> of(std::size_t output) const {
    return std::span(positions_).subspan(first(output), ends_[output] - first(output));
  }

  /// The first byte of an output's results in those of a tile, and the bytes of all.
  std::size_t first_byte(std::size_t output) const { return output == 0 ? 0 : bytes_[output - 1]; }
  std::size_t bytes() const { return first_byte(outputs()); }

  /// The bytes of the answer for so many tiles.
  std::size_t answer_bytes(std::size_t tiles) const;

 private:
  unsigned bits_;
  std::vector<std::size_t> ends_, bytes_;
  std::vector<std::uint32_t> positions_;
};

/// The server's message and its shares, by tile, output and position.
struct Evaluation {
  Buffer<std::uint8_t> answer;
  Buffer<std::uint32_t> shares;
};

/// Multiplies the ciphertexts of `tiles` tiles. The inputs of a tile come from all `messages`: of each, its
/// share of the ciphertexts, in their order. `seed` must come from random_seed(), except in tests, and is
/// never used twice. Throws Error(argument) if the messages or `results` do not fit the weights.
Evaluation evaluate(const PublicKey& key, const Weights& weights, const Results& results,
                    std::span<const Ciphertexts* const> messages, std::size_t tiles,
                    const Seed& seed, ThreadPool& pool, Tier tier);

/// Returns the client's shares. Throws Error(malformed_message) if `answer` is not valid.
Buffer<std::uint32_t> decrypt(const ClientKey& key, const Results& results,
                              std::span<const std::uint8_t> answer, std::size_t tiles,
                              ThreadPool& pool, Tier tier);

}  // namespace nescio::rlwe
