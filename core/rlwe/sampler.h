#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/buffer.h"
#include "base/tier.h"
#include "rlwe/kernels.h"

namespace nescio::rlwe {

inline constexpr std::size_t kSeedBytes = 32;

/// The seed of a stream, which is overwritten before its memory is released.
struct Seed : std::array<std::uint8_t, kSeedBytes> {
  ~Seed() { wipe(data(), size()); }
};

/// Returns a seed from the operating system's generator.
Seed random_seed();

/// The polynomials of a seed. Each has a ChaCha20 stream of its own: the seed is the key, and the nonce
/// is the kind of the values, the polynomial's number, and the number of the prime (or 0).
class Sampler {
 public:
  Sampler(const Seed& seed, Tier tier);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  /// Writes N uniform residues modulo p_i: the lowest 30 bits of words of 32 bits, without those that
  /// are not below p_i. The time depends on the seed: for public seeds.
  void variable_time_uniform(std::uint32_t number, unsigned i, std::uint32_t* row) const;

  /// Writes N uniform values of -1, 0 and 1, from 64 bits each; a probability is off by 2^-64 or less.
  void ternary(std::uint32_t number, std::int32_t* out) const;

  /// Writes N errors: centered binomials of kErrorCoins coins, of variance kErrorCoins / 4.
  void errors(std::uint32_t number, std::int32_t* out) const;

  /// Writes uniform words of 32 bits.
  void masks(std::uint32_t number, std::size_t count, std::uint32_t* out) const;

 private:
  enum class Kind : std::uint32_t { uniform, error, ternary, mask };

  void blocks(Kind kind, std::uint32_t number, std::uint32_t prime, std::uint64_t first,
              std::size_t count, void* out) const;
  void from_words(Kind kind, std::uint32_t number,
                  void (*convert)(const std::uint64_t*, std::int32_t*), std::int32_t* out) const;

  std::array<std::uint32_t, kSeedBytes / 4> key_;
  Tier tier_;
};

}  // namespace nescio::rlwe
