#pragma once

// The ChaCha20 keystream (RFC 8439, section 2.4) with a key of 32 bytes: randomness of protocols that
// need more than a seed. The time is independent of the key in every tier.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/tier.h"

namespace nescio::prg {

/// The key and the nonce of a stream, little-endian.
struct StreamKey {
  std::array<std::uint32_t, 8> key;
  std::array<std::uint32_t, 3> nonce;
};

inline constexpr std::size_t kStreamBlockBytes = 64;

/// Writes blocks first, first + 1, ... of a stream; first + count is at most 2^32.
void chacha20_blocks(const StreamKey& key, std::uint64_t first, std::size_t count, void* out,
                     Tier tier);

NESCIO_TIERS(void chacha20_blocks(const StreamKey& key, std::uint32_t first, std::size_t count,
                                  std::uint8_t* out);)

}  // namespace nescio::prg
