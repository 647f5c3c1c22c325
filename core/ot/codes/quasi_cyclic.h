#pragma once

// Quasi-cyclic codes for dual LPN: Boyle, Couteau, Gilboa, Ishai, Kohl, Rindal and Scholl,
// "Efficient Two-Round OT Extension and Silent Non-Interactive Secure Computation", CCS 2019. Of
// rate 1/2.
//
// The code is public; the blocks that it encodes are secret. Time and addresses depend only on the
// seed of the code and on sizes.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "base/block.h"
#include "base/buffer.h"
#include "base/cpu.h"
#include "base/thread_pool.h"

namespace nescio::ot {

/// A scratch buffer for products that is kept between calls: page faults on newly allocated memory
/// can take half as long as a product. It holds secrets and is overwritten when it is freed.
class QuasiCyclicScratch {
 public:
  /// The buffers for a product at `points` points, not initialized, and the lock that keeps them.
  struct Lease {
    std::unique_lock<std::mutex> lock;
    std::span<Block> product;
    std::span<std::uint32_t> values;
  };
  /// Locks the buffers, after waiting for a product of another thread, and resizes them if
  /// necessary.
  Lease acquire(std::size_t points);

 private:
  std::mutex mutex_;
  std::unique_ptr<SecretBuffer<Block>> product_;
  std::unique_ptr<Buffer<std::uint32_t>> values_;
};

/// Returns the first `count` blocks of e0 + a e1 in F_2[X] / (X^p - 1), for each of the 128 bits of
/// a block. e0 and e1 are the halves of `noise`; a is derived from the seed. The result is exact
/// for every p; the caller has to choose a secure p (a prime that has 2 as a primitive root).
/// Throws Error(argument) if the number of blocks is odd, zero or above 2^31, or if count exceeds
/// p.
Buffer<Block> encode_quasi_cyclic(std::span<const Block> noise, const std::uint8_t code_seed[16],
                                  std::size_t count, ThreadPool& pool, Tier tier,
                                  QuasiCyclicScratch& scratch);

}  // namespace nescio::ot
