#pragma once

// Devices: classes that hold memory and run kernels. What is written for any device
// (ggm/walk_gpu.h, pir/gpu/answer_gpu.h) runs on both classes that satisfy the concept ComputeDevice:
//
//     EmulatedDevice   runs kernels on the CPU, for tests
//     CudaDevice       runs them on an NVIDIA GPU
//
//     count(), info(number)               the devices of this machine, and their properties
//     allocate(bytes), release(p, bytes)  device memory; Error(resource) if there is not enough
//     allocate_host(bytes), release_host(p)   page-locked host memory, for the fastest copies
//     upload(to, from, bytes)             copies from host memory; download(...) copies back
//     upload_rows(to, from, stride, ...)  copies rows with a stride in host memory to packed rows
//     download_rows(...)                  copies rows with a stride in device memory to packed rows
//     copy(to, from, bytes)               copies between devices of one kind
//     zero(p, bytes)                      clears device memory
//     launch(kernel, grid)                queues a kernel; Error(resource) if it needs more shared
//                                         memory than a block may have
//     launch_on(stream, kernel, grid)     queues it on the caller's stream, a cudaStream_t as a
//                                         number; a device without streams runs it at once
//     seconds_each(count, work)           seconds per run of `count` runs of work(), which launches
//                                         kernels, recorded as one graph
//     resident_blocks(kernel)             blocks of a kernel that one processor holds at once
//     finish()                            waits for all queued work; throws its errors
//     synchronize(number)                 waits for all work on a device, other libraries' too
//     capturing(stream)                   true if the caller is recording a graph from its stream
//     memory_use(), reset_peak()          bytes allocated, now and at the peak since the last reset
//     kReadsCuda                          true if the device can read memory of NVIDIA GPUs
//     kMeasurementScale                   problem-size multiplier for benchmarks
//
// Other work of a device object is queued in order on one stream of its own.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/error.h"
#include "gpu/thread_block.h"

namespace nescio::gpu {

/// Properties of a device.
struct DeviceInfo {
  std::string name;
  unsigned processors;           ///< streaming multiprocessors
  unsigned capability;           ///< 10 x compute capability: 90 for a Hopper
  std::size_t cache_bytes;       ///< of the second level
  std::size_t memory_bytes;      ///< in total
  std::size_t shared_bytes_max;  ///< largest shared memory of a block
};

/// The error for a kernel that needs more shared memory than a block of the device may have: a bug in
/// the plan that chose it.
inline Error too_much_shared_memory(std::size_t bytes, const DeviceInfo& info) {
  return Error(ErrorKind::resource, "shared memory of a kernel: found " + std::to_string(bytes) +
                                        " bytes, expected at most " +
                                        std::to_string(info.shared_bytes_max) + " on " + info.name);
}

/// Bytes of device memory that an object has allocated.
struct MemoryUse {
  std::size_t now = 0;
  std::size_t peak = 0;

  void add(std::size_t bytes) {
    now += bytes;
    if (now > peak) peak = now;
  }
};

/// An owned, uninitialized array in a device's memory. The device outlives it.
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

  /// Returns memory for at least `size` elements: the present memory if it is large enough, otherwise
  /// new memory with an eighth to spare.
  T* at_least(Device& device, std::size_t size) {
    if (size > size_) {
      *this = DeviceBuffer();  // releases the smaller memory first
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

/// Page-locked host memory, kept from one use to the next.
template <class Device>
class HostBuffer {
 public:
  HostBuffer() = default;
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  ~HostBuffer() { Device::release_host(data_); }

  /// Returns at least `bytes` bytes. The content is lost if the memory grows.
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

/// The smallest kernel, for the concept below.
struct EmptyKernel {
  static constexpr unsigned kThreads = kWarp;
  static constexpr bool kCooperative = true;
  std::size_t shared_bytes() const { return 0; }
  template <ThreadBlock B>
  NESCIO_DEVICE void operator()(B&) const {}
};

/// A device, as described at the top of this file.
template <class D>
concept ComputeDevice =
    ThreadBlock<typename D::Block> && std::constructible_from<D, unsigned> &&
    requires(D& device, const D& const_device, void* to, const void* from, std::size_t bytes,
             unsigned number, const EmptyKernel& kernel, Grid grid, void (*work)()) {
      { D::kReadsCuda } -> std::convertible_to<bool>;
      { D::kMeasurementScale } -> std::convertible_to<unsigned>;
      { D::count() } -> std::same_as<unsigned>;
      { D::info(number) } -> std::same_as<DeviceInfo>;
      { device.allocate(bytes) } -> std::same_as<void*>;
      { device.release(to, bytes) } noexcept;
      { D::allocate_host(bytes) } -> std::same_as<void*>;
      { D::release_host(to) } noexcept;
      device.upload(to, from, bytes);
      device.upload_rows(to, from, bytes, bytes, bytes);
      device.download(to, from, bytes);
      device.download_rows(to, from, bytes, bytes, bytes);
      device.copy(to, from, bytes);
      device.zero(to, bytes);
      device.launch(kernel, grid);
      device.launch_on(std::uintptr_t{}, kernel, grid);
      { device.seconds_each(number, work) } -> std::same_as<double>;
      { const_device.resident_blocks(kernel) } -> std::same_as<unsigned>;
      device.finish();
      D::synchronize(number);
      { const_device.capturing(std::uintptr_t{}) } -> std::same_as<bool>;
      { const_device.memory_use() } -> std::same_as<MemoryUse>;
      device.reset_peak();
    };

}  // namespace nescio::gpu
