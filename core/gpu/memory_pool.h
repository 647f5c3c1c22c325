#pragma once

// A caching allocator of a device's memory. Released memory is kept for the next allocation: on a GPU
// an allocation costs as much as a large kernel, and a release waits for all kernels. Work of one
// device object is queued in order, so memory of the pool may be written at once.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/error.h"
#include "gpu/device.h"

namespace nescio::gpu {

template <ComputeDevice Device>
class MemoryPool {
 public:
  /// Maximum bytes of unused memory in the pool.
  static constexpr std::size_t kMaxCached = std::size_t{4} << 30;

  explicit MemoryPool(unsigned number) : number_(number), device_(number) {}
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;
  ~MemoryPool() { trim(); }

  unsigned number() const { return number_; }
  Device& device() { return device_; }

  struct Allocation {
    void* data = nullptr;
    std::size_t bytes = 0;
  };

  /// Allocates uninitialized memory. Throws Error(resource) if the device is out of memory.
  Allocation allocate(std::size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto best = cached_.end();
    for (auto it = cached_.begin(); it != cached_.end(); ++it) {
      const bool fits = it->bytes >= bytes && it->bytes - bytes <= bytes / 2 + kSmall;
      if (fits && (best == cached_.end() || it->bytes < best->bytes)) best = it;
    }
    if (best != cached_.end()) {
      const Allocation found = *best;
      cached_.erase(best);
      cached_bytes_ -= found.bytes;
      return found;
    }
    try {
      return {device_.allocate(bytes), bytes};
    } catch (const Error&) {
      if (cached_.empty()) throw;
      trim();
      return {device_.allocate(bytes), bytes};
    }
  }

  /// Releases an allocation. Memory that other libraries may still be reading is not kept.
  void release(Allocation allocation, bool shared) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    try {
      if (!shared && allocation.bytes <= kMaxCached - cached_bytes_) {
        cached_.push_back(allocation);
        cached_bytes_ += allocation.bytes;
        return;
      }
    } catch (const std::bad_alloc&) {
      // the allocation is not kept
    }
    release_to_device(allocation, shared);
  }

  /// Releases all unused memory to the device.
  void trim() noexcept {
    for (const Allocation& allocation : cached_) release_to_device(allocation, false);
    cached_.clear();
    cached_bytes_ = 0;
  }

 private:
  static constexpr std::size_t kSmall = 1 << 20;

  /// Overwrites memory, which may hold secrets, before it is released, but after all reads of it.
  void release_to_device(Allocation allocation, bool shared) noexcept {
    try {
      if (shared) Device::synchronize(number_);
      device_.zero(allocation.data, allocation.bytes);
    } catch (const Error&) {
      // the device has failed, and its memory is lost with it
    }
    device_.release(allocation.data, allocation.bytes);
  }

  unsigned number_;
  Device device_;
  std::mutex mutex_;
  std::vector<Allocation> cached_;
  std::size_t cached_bytes_ = 0;
};

/// An owned, uninitialized array in a pool.
template <ComputeDevice Device, class T>
class PooledBuffer {
 public:
  PooledBuffer(std::shared_ptr<MemoryPool<Device>> pool, std::size_t size)
      : pool_(std::move(pool)), allocation_(pool_->allocate(size * sizeof(T))), size_(size) {}
  PooledBuffer(const PooledBuffer&) = delete;
  PooledBuffer& operator=(const PooledBuffer&) = delete;
  ~PooledBuffer() { pool_->release(allocation_, shared_); }

  T* data() const { return static_cast<T*>(allocation_.data); }
  std::size_t size() const { return size_; }
  MemoryPool<Device>& memory() const { return *pool_; }

  /// Marks the memory as read by other libraries, on streams of their own.
  void share() { shared_ = true; }
  bool shared() const { return shared_; }

 private:
  std::shared_ptr<MemoryPool<Device>> pool_;
  typename MemoryPool<Device>::Allocation allocation_;
  std::size_t size_;
  std::atomic<bool> shared_ = false;
};

}  // namespace nescio::gpu
