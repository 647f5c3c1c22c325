#pragma once

// The CPU as a device: device memory is host memory, and a launched kernel runs at once, block by
// block.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"
#include "gpu/device.h"
#include "gpu/emulated/block.h"

namespace nescio::gpu {

class EmulatedDevice {
 public:
  using Block = EmulatedBlock;

  /// Device 0 runs threads in order, device 1 in reverse order (different results mean a data race).
  /// Both are small, so that short tests take every path. Device 2 is an older GPU without matrix
  /// instructions on bits, device 3 has the size of an H200, for which plans choose otherwise. Throws
  /// Error(resource) for any other number.
  explicit EmulatedDevice(unsigned device)
      : order_(device == 1 ? ThreadOrder::backwards : ThreadOrder::forwards), info_(info(device)) {}

  static constexpr unsigned kMeasurementScale = 1;
  static constexpr bool kReadsCuda = false;

  static constexpr unsigned count() { return 4; }
  static DeviceInfo info(unsigned device) {
    if (device >= count()) {
      throw Error(ErrorKind::resource, "emulated:" + std::to_string(device) +
                                           " does not exist: found " + std::to_string(count()) +
                                           " emulated devices");
    }
    if (device == 3) return {"emulated", 132, 90, 60 << 20, kMemory, 227 << 10};
    const bool old = device == 2;
    return {"emulated", 4, old ? 75u : 80u, 64 << 10, kMemory, (old ? 64u : 99u) << 10};
  }

  void* allocate(std::size_t bytes) {
    check_not_capturing("an allocation");
    void* memory = bytes > kMemory ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
    if (memory == nullptr) {
      throw Error(ErrorKind::resource, "the emulated device is out of memory: requested " +
                                           std::to_string(bytes) + " of " +
                                           std::to_string(kMemory) + " bytes");
    }
    std::memset(memory, 0xA5, bytes);  // a GPU's is not initialized either
    memory_use_.add(bytes);
    return memory;
  }
  void release(void* memory, std::size_t bytes) noexcept {
    if (capturing_) ++releases_in_capture_;
    memory_use_.now -= bytes;
    std::free(memory);
  }

  static void* allocate_host(std::size_t bytes) {
    void* memory = std::malloc(bytes == 0 ? 1 : bytes);
    if (memory == nullptr) {
      throw Error(ErrorKind::resource,
                  "out of memory: requested " + std::to_string(bytes) + " bytes");
    }
    return memory;
  }
  static void release_host(void* memory) noexcept { std::free(memory); }

  void upload(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
  void upload_rows(void* to, const void* from, std::size_t stride, std::size_t bytes,
                   std::size_t rows) {
    for (std::size_t i = 0; i < rows; ++i) {
      std::memcpy(static_cast<std::byte*>(to) + i * bytes,
                  static_cast<const std::byte*>(from) + i * stride, bytes);
    }
  }
  void download(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
  void download_rows(void* to, const void* from, std::size_t stride, std::size_t bytes,
                     std::size_t rows) {
    upload_rows(to, from, stride, bytes, rows);
  }
  void copy(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
  void zero(void* memory, std::size_t bytes) { std::memset(memory, 0, bytes); }
  void finish() { check_not_capturing("a wait"); }
  static void synchronize(unsigned) { check_not_capturing("a wait"); }

  /// Tests call these to pretend that every stream is recording a graph. As with CUDA, memory may then be
  /// neither allocated nor released, and nothing may be waited for.
  static void begin_capture() {
    releases_in_capture_ = 0;
    capturing_ = true;
  }
  /// Throws Error(device) if memory was released since begin_capture.
  static void end_capture() {
    capturing_ = false;
    if (releases_in_capture_ != 0) throw forbidden_in_capture("a release of memory");
  }
  static bool capturing(std::uintptr_t) { return capturing_; }

  MemoryUse memory_use() const { return memory_use_; }
  void reset_peak() { memory_use_.peak = memory_use_.now; }

  template <Kernel K>
  void launch(const K& kernel, Grid grid) {
    if constexpr (K::kCooperative) {
      if (kernel.shared_bytes() > info_.shared_bytes_max)
        throw too_much_shared_memory(kernel.shared_bytes(), info_);
      FiberTeam team(K::kThreads, kernel.shared_bytes(), order_);
      for_each_block(grid,
                     [&](Grid at) { team.run(at, [&](EmulatedBlock& block) { kernel(block); }); });
    } else {
      for_each_block(grid, [&](Grid at) {
        for (unsigned i = 0; i < K::kThreads; ++i) {
          EmulatedBlock block(nullptr, at,
                              order_ == ThreadOrder::forwards ? i : K::kThreads - 1 - i);
          kernel(block);
        }
      });
    }
  }

  template <Kernel K>
  void launch_on(std::uintptr_t, const K& kernel, Grid grid) {
    launch(kernel, grid);
  }

  template <class Work>
  double seconds_each(unsigned count, const Work& work) {
    const auto begin = std::chrono::steady_clock::now();
    for (unsigned i = 0; i < count; ++i) work();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    return taken.count() / count;
  }

  template <Kernel K>
  unsigned resident_blocks(const K&) const {
    return 2;
  }

 private:
  static Error forbidden_in_capture(const std::string& what) {
    return Error(ErrorKind::device, what + " during the capture of a graph");
  }
  static void check_not_capturing(const char* what) {
    if (capturing_) throw forbidden_in_capture(what);
  }

  static inline std::atomic<bool> capturing_ = false;
  static inline std::atomic<unsigned> releases_in_capture_ = 0;

  static constexpr std::size_t kMemory = std::size_t{1} << 30;

  template <class Work>
  void for_each_block(Grid grid, Work work) const {
    for (std::uint32_t y = 0; y < grid.y; ++y) {
      for (std::uint32_t x = 0; x < grid.x; ++x) {
        work(order_ == ThreadOrder::forwards ? Grid{x, y} : Grid{grid.x - 1 - x, grid.y - 1 - y});
      }
    }
  }

  ThreadOrder order_;
  DeviceInfo info_;
  MemoryUse memory_use_;
};

static_assert(ThreadBlock<EmulatedBlock>);
static_assert(ComputeDevice<EmulatedDevice>);

}  // namespace nescio::gpu
