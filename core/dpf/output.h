#pragma once

#include <cstdint>
#include <string_view>

namespace nescio::dpf {

/// The group that shares add up in, by the number that a serialised key carries.
enum class Output : std::uint8_t {
  bit = 0,   ///< one bit, XOR
  u8 = 1,    ///< Z_2^8
  u32 = 2,   ///< Z_2^32
  u64 = 3,   ///< Z_2^64
  u128 = 4,  ///< Z_2^128
};

const char* output_name(Output output) noexcept;

/// Throws Error(argument), listing the names there are, if `name` is none of them.
Output parse_output(std::string_view name);

/// False for numbers that no output has; for bytes from outside.
bool is_output(std::uint8_t number) noexcept;

/// Bits of one share: 1, 8, 32, 64 or 128.
unsigned element_bits(Output output) noexcept;

/// Shares in one leaf: 512, 64, 16, 8 or 4; and log2 of that, for who may not divide by a variable
/// because the time it takes depends on the dividend.
std::uint64_t leaf_elements(Output output) noexcept;
unsigned leaf_element_bits(Output output) noexcept;

}  // namespace nescio::dpf
