#pragma once

#include <bit>
#include <cstdint>

namespace nescio {

static_assert(std::endian::native == std::endian::little,
              "Nescio's formats are little-endian and its kernels read them in place");

/// 128 bits: a node of a GGM tree, or a quarter of a leaf.
///
/// Byte 0 is the lowest byte of `lo`. A node's control bit t is bit 0 of byte 0, so that a node and
/// its control bit travel, and are corrected, as one value.
struct alignas(16) Block {
  std::uint64_t lo;
  std::uint64_t hi;

  friend constexpr bool operator==(const Block&, const Block&) = default;
};

// Marks code of one thread that is compiled for the GPU as well as for the CPU.
#if defined(__CUDACC__)
#define NESCIO_DEVICE __host__ __device__
#else
#define NESCIO_DEVICE
#endif

// Always inlined: files that are compiled for one instruction set include this header, and the linker
// could choose an out-of-line copy made there for code that runs on every machine.
#define NESCIO_INLINE [[gnu::always_inline]] NESCIO_DEVICE constexpr inline

NESCIO_INLINE Block operator^(Block a, Block b) { return {a.lo ^ b.lo, a.hi ^ b.hi}; }
NESCIO_INLINE Block operator&(Block a, Block b) { return {a.lo & b.lo, a.hi & b.hi}; }
NESCIO_INLINE Block& operator^=(Block& a, Block b) { return a = a ^ b; }

/// The control bit of a node.
NESCIO_INLINE std::uint64_t control_bit(Block b) { return b.lo & 1; }

/// All ones if `bit` is 1, zero if it is 0; constant time.
NESCIO_INLINE std::uint64_t mask_from_bit(std::uint64_t bit) { return std::uint64_t{0} - bit; }
NESCIO_INLINE Block block_mask(std::uint64_t bit) {
  return {mask_from_bit(bit), mask_from_bit(bit)};
}

/// 1 if a == b, else 0; constant time for any a, b below 2^63.
NESCIO_INLINE std::uint64_t equal_bit(std::uint64_t a, std::uint64_t b) {
  return ((a ^ b) - 1) >> 63;
}

}  // namespace nescio
