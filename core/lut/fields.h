#pragma once

// Messages of random transfers that make one-time tables, packed to the bit. tests/spec/lut.py is the
// specification: a transfer's field has entries of a one-hot vector, then bits of a product.
//
// The time and the memory addresses depend only on counts and sizes.

#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"

namespace nescio::lut {

/// Bits of the numbers that products are shares of.
inline constexpr unsigned kRingBits = 32;
/// Bits of the largest table: 2^12 entries.
inline constexpr unsigned kMaxTableBits = 12;

/// The field of one transfer. The product's weight is 2^(shift + 1).
struct Field {
  unsigned entries;
  unsigned product;
  unsigned shift;

  unsigned bits() const { return entries + product; }
};

/// 64-bit words of each of some arrays, one after the other.
template <class T>
struct Words {
  T* data;
  std::size_t width;

  T* operator[](std::size_t i) const { return data + i * width; }
};

/// The bytes of a message: the fields of `count` transfers, without gaps.
std::size_t message_bytes(const Field& field, std::size_t count);

/// The sender's part of some transfers: its shares of vectors (null without entries), its bits,
/// 0 or 1, and both pads.
struct Sent {
  Words<const std::uint64_t> shares;
  const std::uint8_t* bits;
  Words<const std::uint64_t> zero, one;
};

/// The receiver's part: its choices, 0 or 1, its pads, and the message.
struct Received {
  const std::uint8_t* choices;
  Words<const std::uint64_t> pads;
  const std::uint8_t* message;
};

/// Writes the sender's message, and adds to its shares of numbers (none if null).
///
/// Throws Error(argument) for a field that a table does not have, or pads that are too short.
void write_message(const Field& field, std::size_t count, const Sent& sent, std::uint8_t* message,
                   std::uint32_t* numbers, ThreadPool& pool);

/// Writes the receiver's shares of the entries (none if the field has no entries), and adds to its
/// shares of numbers (none if null). Throws as write_message does.
void read_message(const Field& field, std::size_t count, const Received& received,
                  const Words<std::uint64_t>& entries, std::uint32_t* numbers, ThreadPool& pool);

/// Packs the lowest `bits` bits, 1 to 16, of numbers one after the other: message_bytes({bits, 0, 0},
/// count) bytes. Throws Error(argument) for another number of bits.
void pack(unsigned bits, std::size_t count, const std::uint16_t* numbers, std::uint8_t* out);

/// Undoes `pack`.
void unpack(unsigned bits, std::size_t count, const std::uint8_t* packed, std::uint16_t* out);

/// Doubles shares of one-hot vectors, from 2^level entries to twice as many.
///
/// `zero` has the pads that the party sent with, `received` the entries that it received. Throws
/// Error(argument) for a level that no table has, or words that are too few.
void grow(unsigned level, std::size_t count, const std::uint8_t* bits,
          const Words<const std::uint64_t>& zero, const Words<const std::uint64_t>& received,
          const Words<std::uint64_t>& shares, ThreadPool& pool);

}  // namespace nescio::lut
