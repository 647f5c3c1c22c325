#include "rlwe/messages.h"

#include <cstring>
#include <string>

#include "base/buffer.h"
#include "base/error.h"

namespace nescio::rlwe {
namespace {

constexpr std::uint64_t kResidueMask = (std::uint64_t{1} << 30) - 1;
constexpr std::uint64_t kUpperMask = (std::uint64_t{1} << 40) - 1;
constexpr std::size_t kGroup = 4, kGroupBytes = 15;  // four residues are fifteen bytes

}  // namespace

std::size_t ciphertexts_bytes(std::size_t count) {
  return kSeedBytes + checked_product(count, 2 * kRowBytes);
}

std::size_t answer_bytes(std::size_t outputs, std::size_t results) {
  return checked_product(outputs, kUpperBytes) + checked_product(results, kResultBytes);
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

void write_upper(const std::uint64_t* coefficients, std::uint8_t* out) {
  for (std::size_t k = 0; k < kDegree; ++k) std::memcpy(out + 5 * k, coefficients + k, 5);
}

void read_upper(const std::uint8_t* in, std::uint64_t* coefficients) {
  for (std::size_t k = 0; k + 1 < kDegree; ++k) {
    std::memcpy(coefficients + k, in + 5 * k, 8);
    coefficients[k] &= kUpperMask;
  }
  coefficients[kDegree - 1] = 0;
  std::memcpy(coefficients + kDegree - 1, in + 5 * (kDegree - 1), 5);
}

}  // namespace nescio::rlwe
