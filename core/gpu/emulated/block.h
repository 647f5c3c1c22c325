#pragma once

// A thread block on the CPU: every thread is a fiber, and a collective operation happens when all of
// its threads have reached it. For tests with a few blocks: a fiber switch costs as much as hundreds
// of a GPU's instructions.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "gpu/thread_block.h"

namespace nescio::gpu {

class FiberTeam;

/// A thread's view of its block; see gpu/thread_block.h.
class EmulatedBlock {
 public:
  EmulatedBlock(FiberTeam* team, Grid at, unsigned thread)
      : team_(team), at_(at), thread_(thread) {}

  std::uint32_t x() const { return at_.x; }
  std::uint32_t y() const { return at_.y; }
  unsigned thread() const { return thread_; }
  unsigned warp() const { return thread_ / kWarp; }
  unsigned lane() const { return thread_ % kWarp; }
  std::byte* shared() const;

  void sync();
  std::uint32_t shuffle_xor(std::uint32_t value, unsigned mask);
  std::uint32_t ballot(bool bit);
  void load_words(std::uint32_t (&out)[4], const Quad* quad);
  void multiply_bits(std::uint32_t (&c)[4], const std::uint32_t (&a)[4],
                     const std::uint32_t (&b)[2]);
  void multiply_bytes(std::uint32_t (&c)[4], const std::uint32_t (&a)[4],
                      const std::uint32_t (&b)[2]);
  static std::uint32_t dot_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t c);
  static std::uint32_t count_ones(std::uint32_t x) {
    return static_cast<std::uint32_t>(std::popcount(x));
  }
  static double multiply_add(double a, double b, double c) { return std::fma(a, b, c); }
  static float multiply_add(float a, float b, float c) { return std::fma(a, b, c); }

  template <class T>
  static void atomic_add(T* to, T value) {
    *to += value;
  }
  static void atomic_xor(std::uint32_t* to, std::uint32_t value) { *to ^= value; }

  void copy_async(void* to, const void* from);
  void commit_copies();
  template <unsigned newest>
  void wait_copies() {
    finish_copies(newest);
  }

 private:
  struct Copy {
    void* to;
    const void* from;
  };
  void finish_copies(std::size_t newest);

  FiberTeam* team_;
  Grid at_;
  unsigned thread_;
  std::vector<Copy> open_;                  // copies of the group that is not committed
  std::vector<std::vector<Copy>> pending_;  // committed groups, oldest first
};

/// The order in which the threads of a block run. A kernel whose output depends on it has a data race.
enum class ThreadOrder { forwards, backwards };

/// The fibers of a block, and their shared memory.
class FiberTeam {
 public:
  FiberTeam(unsigned threads, std::size_t shared_bytes, ThreadOrder order);
  ~FiberTeam();
  FiberTeam(const FiberTeam&) = delete;
  FiberTeam& operator=(const FiberTeam&) = delete;

  /// Runs `work` for every thread of a block. Throws std::logic_error where a GPU's behaviour would be
  /// undefined. Exceptions of `work` propagate.
  void run(Grid at, const std::function<void(EmulatedBlock&)>& work);

  std::byte* shared() { return shared_; }

 private:
  friend class EmulatedBlock;
  struct State;

  enum class Collective { none, block, shuffle, ballot, words, bits, bytes };
  struct Message {
    std::uint32_t a[4], b[2], c[4];
    unsigned mask;
    const Quad* quad;
  };

  /// Suspends the thread until all threads of the collective have reached it.
  const Message& join(unsigned thread, Collective collective, const Message& message);
  bool release();
  bool release_warp(unsigned warp);
  void exchange(unsigned warp, Collective collective);

  std::byte* shared_ = nullptr;
  std::unique_ptr<State> state_;
};

}  // namespace nescio::gpu
