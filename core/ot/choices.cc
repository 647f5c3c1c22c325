#include "ot/choices.h"

namespace nescio::ot {

void low_bits(const Block* blocks, std::size_t count, std::uint8_t* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::uint8_t>(blocks[i].lo & 1);
}

}  // namespace nescio::ot
