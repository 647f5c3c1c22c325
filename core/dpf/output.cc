#include "dpf/output.h"

#include <array>
#include <bit>
#include <cstddef>
#include <string>

#include "base/error.h"
#include "prg/prg.h"

namespace nescio::dpf {
namespace {

struct OutputEntry {
  const char* name;
  unsigned bits;
};

constexpr std::array<OutputEntry, 5> kOutputs = {
    {{"bit", 1}, {"u8", 8}, {"u32", 32}, {"u64", 64}, {"u128", 128}}};

const OutputEntry& entry(Output output) { return kOutputs[static_cast<std::size_t>(output)]; }

}  // namespace

const char* output_name(Output output) noexcept { return entry(output).name; }

bool is_output(std::uint8_t number) noexcept { return number < kOutputs.size(); }

unsigned element_bits(Output output) noexcept { return entry(output).bits; }

std::uint64_t leaf_elements(Output output) noexcept {
  return 8 * prg::kLeafBytes / element_bits(output);
}

unsigned leaf_element_bits(Output output) noexcept {
  return static_cast<unsigned>(std::countr_zero(leaf_elements(output)));
}

Output parse_output(std::string_view name) {
  std::string names;
  for (std::size_t i = 0; i < kOutputs.size(); ++i) {
    if (name == kOutputs[i].name) return static_cast<Output>(i);
    names += std::string(i == 0 ? "" : ", ") + kOutputs[i].name;
  }
  throw Error(ErrorKind::argument,
              "output: found '" + std::string(name) + "', expected one of " + names);
}

}  // namespace nescio::dpf
