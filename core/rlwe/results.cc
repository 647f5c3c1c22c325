#include <string>

#include "base/error.h"
#include "rlwe/layer.h"
#include "rlwe/messages.h"

namespace nescio::rlwe {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& found,
                         const std::string& expected) {
  throw Error(ErrorKind::argument, what + ": found " + found + ", expected " + expected);
}

}  // namespace

Results::Results(std::span<const std::uint32_t> counts, std::span<const std::uint32_t> positions,
                 unsigned bits)
    : bits_(bits), positions_(positions.begin(), positions.end()) {
  if (bits < 1 || bits > kMessageBits) refuse("bits of a result", std::to_string(bits), "1 to 32");
  std::size_t end = 0, bytes = 0;
  for (const std::uint32_t count : counts) {
    ends_.push_back(end += count);
    bytes_.push_back(bytes += packed_bytes(count, bits));
  }
  if (end != positions.size()) {
    refuse("positions of results", std::to_string(positions.size()), std::to_string(end));
  }
  for (const std::uint32_t position : positions) {
    if (position >= kDegree) {
      refuse("position of a result", std::to_string(position),
             "less than " + std::to_string(kDegree));
    }
  }
}

std::size_t Results::answer_bytes(std::size_t tiles) const {
  return checked_product(checked_product(tiles, outputs()), upper_bytes(bits_)) +
         checked_product(tiles, bytes());
}

}  // namespace nescio::rlwe
