#pragma once

// A device's memory for objects that come and go. What is given back is kept for the next who asks:
// to ask a card for memory costs as much as a large kernel, and to give it back waits for all kernels.
// Work on one device object is queued in order, so that what is kept may be written at once.

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

template <class Device>
class Memory {
 public:
  /// Bytes that are kept at most while nobody uses them.
  static constexpr std::size_t kMostKept = std::size_t{4} << 30;

  explicit Memory(unsigned number) : number_(number), device_(number) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { forget(); }

  unsigned number() const { return number_; }
  Device& device() { return device_; }

  struct Piece {
    void* data = nullptr;
    std::size_t bytes = 0;
  };

  /// Memory that is not initialised. Throws Error(resource) if the device has no more.
  Piece take(std::size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto best = kept_.end();
    for (auto piece = kept_.begin(); piece != kept_.end(); ++piece) {
      const bool fits = piece->bytes >= bytes && piece->bytes - bytes <= bytes / 2 + kSmall;
      if (fits && (best == kept_.end() || piece->bytes < best->bytes)) best = piece;
    }
    if (best != kept_.end()) {
      const Piece found = *best;
      kept_.erase(best);
      kept_bytes_ -= found.bytes;
      return found;
    }
    try {
      return {device_.allocate(bytes), bytes};
    } catch (const Error&) {
      if (kept_.empty()) throw;
      forget();
      return {device_.allocate(bytes), bytes};
    }
  }

  /// Takes memory back; it is not kept for others if somebody may still be reading it.
  void give(Piece piece, bool others_read) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    try {
      if (!others_read && piece.bytes <= kMostKept - kept_bytes_) {
        kept_.push_back(piece);
        kept_bytes_ += piece.bytes;
        return;
      }
    } catch (const std::bad_alloc&) {
      // then it is not kept
    }
    end(piece, others_read);
  }

  /// Gives the device back what nobody uses.
  void forget() noexcept {
    for (const Piece& piece : kept_) end(piece, false);
    kept_.clear();
    kept_bytes_ = 0;
  }

 private:
  static constexpr std::size_t kSmall = 1 << 20;

  /// Memory that held secrets is overwritten before others have it, and after those who read it.
  void end(Piece piece, bool others_read) noexcept {
    try {
      if (others_read) Device::synchronize(number_);
      device_.zero(piece.data, piece.bytes);
    } catch (const Error&) {
      // the device has failed, and with it what it held is gone
    }
    device_.release(piece.data, piece.bytes);
  }

  unsigned number_;
  Device device_;
  std::mutex mutex_;
  std::vector<Piece> kept_;
  std::size_t kept_bytes_ = 0;
};

/// An owned array in device memory, not initialized.
template <class Device, class T>
class Array {
 public:
  Array(std::shared_ptr<Memory<Device>> memory, std::size_t size)
      : memory_(std::move(memory)), piece_(memory_->take(size * sizeof(T))), size_(size) {}
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { memory_->give(piece_, shared_); }

  T* data() const { return static_cast<T*>(piece_.data); }
  std::size_t size() const { return size_; }
  Memory<Device>& memory() const { return *memory_; }

  /// Declares that others read the array from now on, on their own streams.
  void share() { shared_ = true; }
  bool shared() const { return shared_; }

 private:
  std::shared_ptr<Memory<Device>> memory_;
  typename Memory<Device>::Piece piece_;
  std::size_t size_;
  std::atomic<bool> shared_ = false;
};

}  // namespace nescio::gpu
