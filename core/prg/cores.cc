// The portable tier: one node at a time.
#include "prg/cores.h"

#include "prg/cores_impl.h"

namespace nescio::prg {

NESCIO_DEFINE_GENERATORS(portable)

std::array<std::uint32_t, 16> chacha20_block(const std::array<std::uint32_t, 16>& state) {
  std::array<std::uint32_t, 16> out;
  ChaChaCore<20>::block(state.data(), out.data());
  return out;
}

}  // namespace nescio::prg
