#pragma once

// Devices: where kernels run. Two classes offer the same functions, and what is written over them
// (ggm/walk_gpu.h, pir/gpu/answer_gpu.h) runs on both:
//
//     EmulatedDevice   runs kernels on the processor, for tests
//     CudaDevice   runs them on an NVIDIA GPU
//
//     count(), info(number)               the devices there are, and what they are
//     allocate(bytes), release(p)         memory of the device; Error(resource) if it is short
//     allocate_host(bytes), release_host(p)   memory of the host that copies are fastest with
//     upload(to, from, bytes)             from the host's memory; download(...) back
//     upload_rows(to, from, stride, ...)  rows of bytes that stand apart in the host's memory, and
//     download_rows(...)                  that stand apart on the device
//     copy(to, from, bytes)               between devices of one kind
//     zero(p, bytes)
//     launch(kernel, grid)                queues a kernel; Error(resource) if it asks for more shared
//                                         memory than a block may have
//     launch_on(stream, kernel, grid)     the same on a stream of the caller's, a cudaStream_t as a
//                                         number; on a device that has none, at once
//     seconds_each(count, work)           of `count` runs of work(), which launches kernels, in a graph
//     resident_blocks(kernel)             blocks of a kernel that one processor holds at once
//     finish()                            waits for all of it, and throws what went wrong
//     synchronize(number)                 waits for all work queued on a device
//     memory_use(), forget_peak()         bytes held, now and at most since the peak was forgotten
//     kReadsCuda                          whether it reads the memory of NVIDIA GPUs
//     kLoad                               how much larger than the smallest a measurement is to be
//
// All other work of one device object is queued on one stream of its own, in order.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/error.h"
#include "gpu/thread_block.h"

namespace nescio::gpu {

/// What a device is.
struct DeviceInfo {
  std::string name;
  unsigned processors;           ///< streaming multiprocessors
  unsigned capability;           ///< 10 x compute capability: 90 for a Hopper
  std::size_t cache_bytes;       ///< of the second level
  std::size_t memory_bytes;      ///< in all
  std::size_t shared_bytes_max;  ///< that a block may ask for
};

/// The error of a kernel that no block of a device has room for: a fault of a plan.
inline Error too_much_shared(std::size_t bytes, const DeviceInfo& info) {
  return Error(ErrorKind::resource, "a kernel asks for " + std::to_string(bytes) +
                                        " bytes of shared memory, a block of " + info.name +
                                        " may have " + std::to_string(info.shared_bytes_max));
}

/// Bytes of device memory that an object holds.
struct MemoryUse {
  std::size_t now = 0;
  std::size_t most = 0;

  void add(std::size_t bytes) {
    now += bytes;
    if (now > most) most = now;
  }
};

/// An owned array in a device's memory, not initialised. The device outlives it.
template <class Device, class T>
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(Device& device, std::size_t size)
      : device_(&device), data_(static_cast<T*>(device.allocate(size * sizeof(T)))), size_(size) {}
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    DeviceBuffer moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~DeviceBuffer() {
    if (data_ != nullptr) device_->release(data_, size_ * sizeof(T));
  }

  /// At least `size` elements: the same memory if it is large enough, or other memory, with room to
  /// grow by an eighth.
  T* at_least(Device& device, std::size_t size) {
    if (size > size_) {
      *this = DeviceBuffer();  // first give back what is too small
      *this = DeviceBuffer(device, size + size / 8);
    }
    return data_;
  }

  T* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  void swap(DeviceBuffer& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  Device* device_ = nullptr;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Memory of the host that a device reads and writes by itself, kept from one use to the next.
template <class Device>
class HostBuffer {
 public:
  HostBuffer() = default;
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  ~HostBuffer() { Device::release_host(data_); }

  /// At least `bytes` bytes, whose content is lost if that is more than before.
  std::uint8_t* at_least(std::size_t bytes) {
    if (bytes > bytes_) {
      Device::release_host(std::exchange(data_, nullptr));
      bytes_ = 0;
      data_ = static_cast<std::uint8_t*>(Device::allocate_host(bytes));
      bytes_ = bytes;
    }
    return data_;
  }

 private:
  std::uint8_t* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace nescio::gpu
