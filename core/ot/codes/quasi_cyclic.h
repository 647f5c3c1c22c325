#pragma once

// Quasi-cyclic codes for dual LPN: Boyle, Couteau, Gilboa, Ishai, Kohl, Rindal and Scholl, "Efficient
// Two-Round OT Extension and Silent Non-Interactive Secure Computation", CCS 2019. Of rate 1/2.
//
// The code is public; the blocks it is applied to are secret. Time and addresses depend on the code's
// seed and on sizes only.

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

/// Memory for products, kept from one call to the next: to get it anew from the system, page by page,
/// can take half as long as a product. It holds secrets, and is wiped at the end.
class QuasiCyclicRoom {
 public:
  /// What a product of 2^m points needs; undefined at first. Waits for another thread's product.
  struct Use {
    std::unique_lock<std::mutex> lock;
    std::span<Block> product;
    std::span<std::uint32_t> values;
  };
  Use use(std::size_t points);

 private:
  std::mutex mutex_;
  std::unique_ptr<SecretBuffer<Block>> product_;
  std::unique_ptr<Buffer<std::uint32_t>> values_;
};

/// The first `count` blocks of e0 + a e1 in F_2[X] / (X^p - 1), for each of the 128 bits of a block,
/// where e0 and e1 are the halves of `noise` and the seed makes a. Exact for every p; that a p makes a
/// safe code (prime, with 2 as a primitive root) the caller sees to. Throws Error(argument) for an
/// odd number of blocks, none, or more than 2^31, and for a count above p.
Buffer<Block> encode_quasi_cyclic(std::span<const Block> noise, const std::uint8_t code_seed[16],
                                  std::size_t count, ThreadPool& pool, Tier tier,
                                  QuasiCyclicRoom& room);

}  // namespace nescio::ot
