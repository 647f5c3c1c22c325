#pragma once

// Table-based AES-128 for a GPU thread, and the generator `aes128`: a round of AES is four lookups and
// XORs per column (Daemen and Rijmen, "AES Proposal: Rijndael", 1999, section 5.2.1). Shared memory has
// one copy of the table per lane of a warp, each in its own bank, so lookups have no bank conflicts at
// any address (Tezcan, "Optimization of Advanced Encryption Standard on Graphics Processing Units",
// 2021). Shared memory has no cache, and a lookup without a conflict takes the same time at every
// address, so other programs on the GPU observe only that AES runs. This matters for the nodes of
// oblivious transfer (ot/gpu/trees_gpu.h), which are secret; a lookup server knows its own nodes, and
// its clients run prg/aes128.cc.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/word.h"
#include "gpu/thread_block.h"
#include "prg/aes128.h"
#include "prg/prg.h"

namespace nescio::prg {

/// The round keys of a public key as columns, little-endian words. A round key is one load of sixteen
/// bytes.
using AesColumns = std::array<gpu::Quad, 11>;

/// Public constants for the kernels of all generators.
struct GpuTables {
  AesColumns round_keys;     ///< round keys of the fixed key
  const std::uint32_t* aes;  ///< aes_table(), in device memory
};

/// T[x] = the column (2 S[x], S[x], S[x], 3 S[x]), its first byte lowest.
std::array<std::uint32_t, 256> aes_table();

/// Return the round keys of the fixed key, and those of any key.
AesColumns aes_round_keys();
AesColumns aes_round_keys(const aes128::RoundKeys& keys);

/// AES-128 itself.
class AesGpu {
 public:
  static constexpr std::size_t kSharedBytes = 256 * gpu::kWarp * sizeof(std::uint32_t);

  /// Constructed by every thread of the block, with the same shared memory; `table` is aes_table().
  template <gpu::ThreadBlock B>
  NESCIO_DEVICE AesGpu(B& block, const std::uint32_t* table, std::byte* shared, unsigned threads)
      : table_(reinterpret_cast<std::uint32_t*>(shared)),
        lane_bytes_(block.lane() * sizeof(std::uint32_t)) {
    for (unsigned i = block.thread(); i < 256 * gpu::kWarp; i += threads) {
      table_[i] = table[i / gpu::kWarp];
    }
    block.sync();
  }

  NESCIO_DEVICE Block encrypt(const AesColumns& k, Block x) const {
    std::uint32_t c[4] = {static_cast<std::uint32_t>(x.lo), static_cast<std::uint32_t>(x.lo >> 32),
                          static_cast<std::uint32_t>(x.hi), static_cast<std::uint32_t>(x.hi >> 32)};
    const gpu::Quad first_key = k[0], last_key = k[10];
    NESCIO_UNROLL
    for (unsigned i = 0; i < 4; ++i) c[i] ^= first_key.w[i];
    NESCIO_UNROLL
    for (unsigned round = 1; round < 10; ++round) {
      const gpu::Quad key = k[round];
      const std::uint32_t d[4] = {column(c[0], c[1], c[2], c[3]), column(c[1], c[2], c[3], c[0]),
                                  column(c[2], c[3], c[0], c[1]), column(c[3], c[0], c[1], c[2])};
      NESCIO_UNROLL
      for (unsigned i = 0; i < 4; ++i) c[i] = d[i] ^ key.w[i];
    }
    const std::uint32_t d[4] = {last(c[0], c[1], c[2], c[3]), last(c[1], c[2], c[3], c[0]),
                                last(c[2], c[3], c[0], c[1]), last(c[3], c[0], c[1], c[2])};
    NESCIO_UNROLL
    for (unsigned i = 0; i < 4; ++i) c[i] = d[i] ^ last_key.w[i];
    return {c[0] | std::uint64_t{c[1]} << 32, c[2] | std::uint64_t{c[3]} << 32};
  }

 private:
  /// A column of SubBytes, ShiftRows and MixColumns: byte r is taken from the r-th of the columns.
  NESCIO_DEVICE std::uint32_t column(std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                     std::uint32_t d) const {
    return look_up<0>(a) ^ rotate(look_up<1>(b), 8) ^ rotate(look_up<2>(c), 16) ^
           rotate(look_up<3>(d), 24);
  }

  /// A column of SubBytes and ShiftRows; the S-box is the table's second byte.
  NESCIO_DEVICE std::uint32_t last(std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                   std::uint32_t d) const {
    return ((look_up<0>(a) >> 8) & 0xFF) | (look_up<1>(b) & 0xFF00) |
           ((look_up<2>(c) << 8) & 0xFF0000) | ((look_up<3>(d) << 16) & 0xFF000000);
  }

  /// Looks up a byte of x in the table. An entry has 32 lanes, 128 bytes, so a shift and a mask turn the
  /// byte into an offset.
  template <unsigned byte>
  NESCIO_DEVICE std::uint32_t look_up(std::uint32_t x) const {
    static_assert(gpu::kWarp * sizeof(std::uint32_t) == 1u << 7);
    const std::uint32_t shifted = byte == 0 ? x << 7 : x >> (8 * byte - 7);
    const std::uint32_t offset = (shifted & 0x7F80) | lane_bytes_;
    return *reinterpret_cast<const std::uint32_t*>(reinterpret_cast<const std::byte*>(table_) +
                                                   offset);
  }
  NESCIO_DEVICE static std::uint32_t rotate(std::uint32_t x, unsigned bits) {
    return (x << bits) | (x >> (32 - bits));
  }

  std::uint32_t* table_;
  std::uint32_t lane_bytes_;
};

class Aes128Gpu {
 public:
  static constexpr GeneratorId kId = GeneratorId::aes128;
  static constexpr unsigned kRadixBits = 1;
  static constexpr std::size_t kSharedBytes = AesGpu::kSharedBytes;

  /// Constructed by every thread of the block, with the same shared memory.
  template <gpu::ThreadBlock B>
  NESCIO_DEVICE Aes128Gpu(B& block, const GpuTables& tables, std::byte* shared, unsigned threads)
      : aes_(block, tables.aes, shared, threads), keys_(&tables.round_keys) {}

  NESCIO_DEVICE void children(Block s, Block* out) const {
    NESCIO_UNROLL
    for (unsigned j = 0; j < 2; ++j) out[j] = hash(s, j);
  }
  NESCIO_DEVICE void leaf(Block s, Block* out) const {
    NESCIO_UNROLL
    for (unsigned j = 0; j < 4; ++j) out[j] = hash(s, aes128::kFirstLeafTweak + j);
  }

 private:
  /// F(sigma(s) ^ tweak), where F(x) = pi(x) ^ x.
  NESCIO_DEVICE Block hash(Block s, std::uint64_t tweak) const {
    const Block x = {s.hi ^ tweak, s.hi ^ s.lo};
    return aes_.encrypt(*keys_, x) ^ x;
  }

  AesGpu aes_;
  const AesColumns* keys_;
};

}  // namespace nescio::prg
