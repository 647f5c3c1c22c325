#pragma once

#include <cstdint>
#include <string_view>

namespace nescio::dpf {

/// The group of the shares, with its number in a serialized key.
enum class Output : std::uint8_t {
  bit = 0,   ///< one bit, XOR
  u8 = 1,    ///< Z_2^8
  u32 = 2,   ///< Z_2^32
  u64 = 3,   ///< Z_2^64
  u128 = 4,  ///< Z_2^128
};

const char* output_name(Output output) noexcept;

/// Returns the output with that name. Throws Error(argument) with all names if it does not exist.
Output parse_output(std::string_view name);

/// Returns false if no output has that number; for untrusted bytes.
bool is_output(std::uint8_t number) noexcept;

/// Bits of one share: 1, 8, 32, 64 or 128.
unsigned element_bits(Output output) noexcept;

/// Returns the shares in one leaf: 512, 64, 16, 8 or 4; and the log2 of that, for constant-time code,
/// which cannot divide by a variable: the time of a division depends on the dividend.
std::uint64_t leaf_elements(Output output) noexcept;
unsigned leaf_element_bits(Output output) noexcept;

}  // namespace nescio::dpf
