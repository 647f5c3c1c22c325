#pragma once

// The messages of a linear layer, and the one place where bytes from the other party are checked. Numbers
// are packed without gaps, the lowest bit first. No message has a head: both parties know its length.
//
//   ciphertexts  a seed, then of each ciphertext the NTT of c0 modulo p0 and modulo p1, 30 bits a value;
//                c1 is expanded from the seed. A public key is one ciphertext.
//   answer       c1 of each output, 40 bits a coefficient; then the results, 32 bits each

#include <cstddef>
#include <cstdint>
#include <span>

#include "rlwe/sampler.h"

namespace nescio::rlwe {

inline constexpr std::size_t kRowBytes = kDegree * 30 / 8;
inline constexpr std::size_t kUpperBytes = kDegree * 40 / 8;
inline constexpr std::size_t kResultBytes = 4;

/// Bytes of a message with so many ciphertexts.
std::size_t ciphertexts_bytes(std::size_t count);

/// Bytes of an answer with so many outputs, and results in all of them.
std::size_t answer_bytes(std::size_t outputs, std::size_t results);

/// Throws Error(malformed_message) if a message does not have the expected length.
void check_length(const char* message, std::size_t found, std::size_t expected);

/// Writes N residues.
void write_row(const std::uint32_t* row, std::uint8_t* out);

/// Reads N residues. Throws Error(malformed_message) if one is not below p_i.
void read_row(const std::uint8_t* in, unsigned i, std::uint32_t* row);

/// Writes and reads N coefficients of 40 bits.
void write_upper(const std::uint64_t* coefficients, std::uint8_t* out);
void read_upper(const std::uint8_t* in, std::uint64_t* coefficients);

}  // namespace nescio::rlwe
