#include "rlwe/messages.h"

#include <cstring>
#include <string>

#include "base/buffer.h"
#include "base/error.h"

namespace nescio::rlwe {
namespace {

constexpr std::uint64_t kResidueMask = (std::uint64_t{1} << 30) - 1;
constexpr std::size_t kGroup = 4, kGroupBytes = 15;  // four residues are fifteen bytes

}  // namespace

std::size_t ciphertexts_bytes(std::size_t count) {
  return kSeedBytes + checked_product(count, 2 * kRowBytes);
}

void check_length(const char* message, std::size_t found, std::size_t expected) {
  if (found == expected) return;
  throw Error(ErrorKind::malformed_message,
              std::string(message) + ": found " + std::to_string(found) + " bytes, expected " +
                  std::to_string(expected) +
                  " bytes; both parties must have the same layer and encoding");
}

void write_row(const std::uint32_t* row, std::uint8_t* out) {
  for (std::size_t k = 0; k < kDegree; k += kGroup, out += kGroupBytes) {
    const std::uint64_t low =
        row[k] | std::uint64_t{row[k + 1]} << 30 | std::uint64_t{row[k + 2]} << 60;
    const std::uint64_t high = row[k + 2] >> 4 | std::uint64_t{row[k + 3]} << 26;
    std::memcpy(out, &low, 8);
    std::memcpy(out + 8, &high, 7);
  }
}

void read_row(const std::uint8_t* in, unsigned i, std::uint32_t* row) {
  std::uint32_t above = 0;
  for (std::size_t k = 0; k < kDegree; k += kGroup, in += kGroupBytes) {
    std::uint64_t low = 0, high = 0;
    std::memcpy(&low, in, 8);
    std::memcpy(&high, in + 8, 7);
    row[k] = static_cast<std::uint32_t>(low & kResidueMask);
    row[k + 1] = static_cast<std::uint32_t>(low >> 30 & kResidueMask);
    row[k + 2] = static_cast<std::uint32_t>((low >> 60 | high << 4) & kResidueMask);
    row[k + 3] = static_cast<std::uint32_t>(high >> 26);
    for (std::size_t j = 0; j < kGroup; ++j) above |= row[k + j] >= kPrimes[i].p;
  }
  if (above == 0) return;
  throw Error(ErrorKind::malformed_message,
              "ciphertext: found a residue that is not below the prime " +
                  std::to_string(kPrimes[i].p) + ", expected smaller ones; ask the sender again");
}

void write_packed(std::span<const std::uint64_t> numbers, unsigned bits, std::uint8_t* out) {
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  std::uint64_t word = 0;
  unsigned filled = 0;
  for (const std::uint64_t number : numbers) {
    word |= (number & mask) << filled;
    filled += bits;
    if (filled < 64) continue;
    std::memcpy(out, &word, 8);
    out += 8;
    filled -= 64;
    word = (number & mask) >> (bits - filled);
  }
  if (filled > 0) std::memcpy(out, &word, (filled + 7) / 8);
}

void read_packed(const std::uint8_t* in, unsigned bits, std::span<std::uint64_t> numbers) {
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  const std::size_t size = packed_bytes(numbers.size(), bits);
  std::size_t k = 0;
  for (; k < numbers.size() && k * bits / 8 + 8 <= size; ++k) {
    std::uint64_t word = 0;
    std::memcpy(&word, in + k * bits / 8, 8);
    numbers[k] = word >> (k * bits % 8) & mask;
  }
  for (; k < numbers.size(); ++k) {
    std::uint64_t word = 0;
    std::memcpy(&word, in + k * bits / 8, size - k * bits / 8);
    numbers[k] = word >> (k * bits % 8) & mask;
  }
}

}  // namespace nescio::rlwe
