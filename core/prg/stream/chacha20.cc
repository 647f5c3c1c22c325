#include "prg/stream/chacha20.h"

#include "prg/stream/chacha20_impl.h"

namespace nescio::prg {

void chacha20_blocks(const StreamKey& key, std::uint64_t first, std::size_t count, void* out,
                     Tier tier) {
  NESCIO_PICK(tier, chacha20_blocks)
  (key, static_cast<std::uint32_t>(first), count, static_cast<std::uint8_t*>(out));
}

namespace portable {

NESCIO_DEFINE_CHACHA20_BLOCKS

}  // namespace portable
}  // namespace nescio::prg
