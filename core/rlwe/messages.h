#pragma once

// The messages of a linear layer, and the one place where bytes from the other party are checked. Numbers
// are packed without gaps, the lowest bit first. No message has a head: both parties know its length.
//
//   ciphertexts  a seed, then of each ciphertext the NTT of c0 modulo p0 and modulo p1, 30 bits a value;
//                c1 is expanded from the seed. A public key is one ciphertext.
//   answer       c1 of each output, with 8 bits a coefficient more than a result has; then the results of each
//                output. What an output has of either fills whole bytes; unused bits are zero.

#include <cstddef>
#include <cstdint>
#include <span>

#include "rlwe/sampler.h"

namespace nescio::rlwe {

inline constexpr std::size_t kRowBytes = kDegree * 30 / 8;
inline constexpr unsigned kExtraBits = 8;  ///< of a coefficient of c1, over those of a result

/// Bytes of a message with so many ciphertexts.
std::size_t ciphertexts_bytes(std::size_t count);

/// Bytes of c1 of an output whose results have `bits` bits.
constexpr std::size_t upper_bytes(unsigned bits) { return kDegree / 8 * (bits + kExtraBits); }

/// Bytes of so many numbers of `bits` bits.
constexpr std::size_t packed_bytes(std::size_t count, unsigned bits) {
  return (count * bits + 7) / 8;
}

/// Throws Error(malformed_message) if a message does not have the expected length.
void check_length(const char* message, std::size_t found, std::size_t expected);

/// Writes N residues.
void write_row(const std::uint32_t* row, std::uint8_t* out);

/// Reads N residues. Throws Error(malformed_message) if one is not below p_i.
void read_row(const std::uint8_t* in, unsigned i, std::uint32_t* row);

/// Writes the lowest `bits` bits of numbers, and reads numbers, for 1 to 40 bits.
void write_packed(std::span<const std::uint64_t> numbers, unsigned bits, std::uint8_t* out);
void read_packed(const std::uint8_t* in, unsigned bits, std::span<std::uint64_t> numbers);

}  // namespace nescio::rlwe
