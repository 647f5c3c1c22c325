#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/buffer.h"
#include "base/thread_pool.h"
#include "rlwe/sampler.h"

namespace nescio::rlwe {

using Row = std::uint32_t*;
using ConstRow = const std::uint32_t*;

/// The client's secret key, a ternary polynomial s, and its public key, an encryption of zero.
class ClientKey {
 public:
  /// Draws s and the error of the public key from `secret`, and c1 of the public key from `open`, which
  /// the public key contains. Seeds must come from random_seed(), except in tests.
  ClientKey(const Seed& secret, const Seed& open, Tier tier);

  /// The message for the server.
  std::span<const std::uint8_t> public_key() const { return {public_.data(), public_.size()}; }

  /// The NTT of s modulo p_i, in Montgomery's form.
  ConstRow secret(unsigned i) const { return secret_.data() + i * kDegree; }

 private:
  SecretBuffer<std::uint32_t> secret_;
  Buffer<std::uint8_t> public_;
};

/// Ciphertexts that were received: the NTTs of c0 and c1.
class Ciphertexts {
 public:
  /// Parses `count` ciphertexts. Throws Error(malformed_message) if the bytes are not valid.
  Ciphertexts(const char* message, std::span<const std::uint8_t> bytes, std::size_t count,
              ThreadPool& pool, Tier tier);

  std::size_t count() const { return rows_.size() / (4 * kDegree); }

  /// Part 0 or 1 of ciphertext k modulo p_i.
  ConstRow row(std::size_t k, unsigned part, unsigned i) const {
    return rows_.data() + (4 * k + 2 * part + i) * kDegree;
  }
  Row row(std::size_t k, unsigned part, unsigned i) {
    return rows_.data() + (4 * k + 2 * part + i) * kDegree;
  }

 private:
  Buffer<std::uint32_t> rows_;
};

/// A client's public key, at the server.
class PublicKey {
 public:
  /// Parses a public key. Throws Error(malformed_message) if the bytes are not valid.
  PublicKey(std::span<const std::uint8_t> bytes, ThreadPool& pool, Tier tier);

  /// Part 0 or 1 modulo p_i, an NTT in Montgomery's form.
  ConstRow row(unsigned part, unsigned i) const { return zero_.row(0, part, i); }

 private:
  Ciphertexts zero_;
};

/// Encrypts `count` polynomials over Z_2^32, N words each. c1 is drawn from `open`, which the message
/// contains, and errors from `secret`. Seeds must come from random_seed(), except in tests, and are
/// never used twice.
Buffer<std::uint8_t> encrypt(const ClientKey& key, const std::uint32_t* messages, std::size_t count,
                             const Seed& secret, const Seed& open, ThreadPool& pool, Tier tier);

}  // namespace nescio::rlwe
