#pragma once

// Device limits for answers: kernels whose time benchmarks compare with.

#include <cstddef>
#include <cstdint>

#include "pir/gpu/plain_product_gpu.h"
#include "prg/generator_gpu.h"

namespace nescio::pir {

/// Reads memory once. The XOR of all words keeps the compiler from removing the reads.
struct ReadMemory {
  static constexpr unsigned kThreads = 256;
  static constexpr bool kCooperative = false;

  const gpu::Quad* data;
  std::uint64_t quads;
  std::uint32_t blocks;
  std::uint32_t* sum;

  gpu::Grid grid() const { return {blocks, 1}; }

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const std::uint64_t step = std::uint64_t{blocks} * kThreads;
    std::uint64_t i = std::uint64_t{block.x()} * kThreads + block.thread();
    std::uint32_t all = 0;
    for (; i + 3 * step < quads; i += 4 * step) {  // four reads in flight
      NESCIO_UNROLL
      for (unsigned k = 0; k < 4; ++k) all ^= sum_of(data[i + k * step]);
    }
    for (; i < quads; i += step) all ^= sum_of(data[i]);
    if (all == 0x12345678) block.atomic_add(sum, all);
  }

 private:
  NESCIO_INLINE static std::uint32_t sum_of(gpu::Quad q) {
    return q.w[0] ^ q.w[1] ^ q.w[2] ^ q.w[3];
  }
};

/// Products on registers without matrix instructions on bits: `rounds` times 16 lines per thread.
struct MultiplyLinesOnly {
  static constexpr unsigned kThreads = 256;
  static constexpr bool kCooperative = false;
  static constexpr unsigned kChains = 16;

  std::uint32_t blocks;
  std::uint32_t rounds;
  std::uint32_t* sum;

  gpu::Grid grid() const { return {blocks, 1}; }
  double products() const { return 512.0 * kChains * rounds * blocks * kThreads; }

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    std::uint32_t c[kChains];
    const std::uint32_t t = block.thread();
    gpu::Quad a[4] = {}, b[4] = {};
    NESCIO_UNROLL
    for (unsigned i = 0; i < kChains; ++i) c[i] = t * i;
    for (std::uint32_t round = 0; round < rounds; ++round) {
      NESCIO_UNROLL
      for (unsigned i = 0; i < 16; ++i) a[i / 4].w[i % 4] += t + round, b[i / 4].w[i % 4] ^= c[i];
      NESCIO_UNROLL
      for (unsigned i = 0; i < kChains; ++i) c[i] = dot_lines<BitOp, B>(a, b, c[i]);
    }
    std::uint32_t all = 0;
    NESCIO_UNROLL
    for (unsigned i = 0; i < kChains; ++i) all ^= c[i];
    if (all == 0x12345678) block.atomic_add(sum, all);
  }
};

/// Matrix instructions on registers: `rounds` times 16 per warp.
template <class Op>
struct MultiplyOnly {
  static constexpr unsigned kThreads = 256;
  static constexpr bool kCooperative = true;
  static constexpr unsigned kChains = 16;
  /// Products per matrix instruction.
  static constexpr std::uint64_t kProducts = 16 * 8 * (Op::kBits ? 256 : 32);

  std::uint32_t blocks;
  std::uint32_t rounds;
  std::uint32_t* sum;

  std::size_t shared_bytes() const { return 0; }
  gpu::Grid grid() const { return {blocks, 1}; }
  double products() const {
    return static_cast<double>(kProducts) * kChains * rounds * blocks * (kThreads / gpu::kWarp);
  }

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    std::uint32_t c[kChains][4];
    const std::uint32_t t = block.thread();
    NESCIO_UNROLL
    for (unsigned i = 0; i < 4 * kChains; ++i) c[i / 4][i % 4] = i;
    const std::uint32_t a[4] = {t, t * 3, t * 5, t * 7}, b[2] = {t * 11, t * 13};
    for (std::uint32_t round = 0; round < rounds; ++round) {
      NESCIO_UNROLL
      for (unsigned i = 0; i < kChains; ++i) Op::multiply(block, c[i], a, b);
    }
    std::uint32_t all = 0;
    NESCIO_UNROLL
    for (unsigned i = 0; i < kChains; ++i) all ^= c[i][0] ^ c[i][1] ^ c[i][2] ^ c[i][3];
    if (all == 0x12345678) block.atomic_add(sum, all);
  }
};

/// A generator on registers: `rounds` calls per thread, each on the previous result.
template <class G, bool leaves>
struct GenerateOnly {
  static constexpr unsigned kThreads = 128;
  static constexpr bool kCooperative = G::kSharedBytes > 0;

  prg::GpuTables tables;
  std::uint32_t blocks;
  std::uint32_t rounds;
  std::uint32_t* sum;

  std::size_t shared_bytes() const { return G::kSharedBytes; }
  gpu::Grid grid() const { return {blocks, 1}; }
  double calls() const { return static_cast<double>(rounds) * blocks * kThreads; }

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const G generator(block, tables, kCooperative ? block.shared() : nullptr, kThreads);
    Block s = {block.thread(), block.x()};
    for (std::uint32_t round = 0; round < rounds; ++round) {
      Block out[prg::kMaxArity] = {};
      if constexpr (leaves) {
        generator.leaf(s, out);
      } else {
        generator.children(s, out);
      }
      s = out[0] ^ out[1] ^ out[2] ^ out[3];
    }
    if (s.lo == 0x12345678) block.atomic_add(sum, static_cast<std::uint32_t>(s.hi));
  }
};

}  // namespace nescio::pir
