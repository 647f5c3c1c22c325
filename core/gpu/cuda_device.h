#pragma once

// An NVIDIA GPU as a device. Every call is checked, memory is plain device memory, and all work is
// queued on one stream. Compiled by nvcc only.

#include <cuda_runtime.h>

#include "gpu/cuda_block.h"
#include "gpu/device.h"

namespace nescio::gpu {

/// Throws Error(resource), naming what was tried, unless `status` is success.
void check_cuda(cudaError_t status, const char* what);

/// Makes a device the current one for a while: its caller may be at work on another.
class Current {
 public:
  explicit Current(int device);
  ~Current() { cudaSetDevice(before_); }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  int before_ = 0;
};

/// Runs a kernel for one thread of a grid.
template <class Kernel>
__global__ void __launch_bounds__(Kernel::kThreads)
    run_kernel(const __grid_constant__ Kernel kernel) {
  CudaBlock block;
  kernel(block);
}

class CudaDevice {
 public:
  using Block = CudaBlock;
  static constexpr unsigned kLoad = 16;

  /// Throws Error(resource) if there is no such device, saying why.
  explicit CudaDevice(unsigned device);
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  /// Devices that can be used; 0 where there is no driver.
  static unsigned count();
  DeviceInfo info() const;

  void* allocate(std::size_t bytes);
  void release(void* memory, std::size_t bytes) noexcept;
  static void* allocate_host(std::size_t bytes);
  static void release_host(void* memory) noexcept;
  void upload(void* to, const void* from, std::size_t bytes);
  void download(void* to, const void* from, std::size_t bytes);
  void download_rows(void* to, const void* from, std::size_t stride, std::size_t bytes,
                     std::size_t rows);
  void zero(void* memory, std::size_t bytes);
  void finish();
  void settle();
  MemoryUse memory_use() const { return memory_use_; }
  void forget_peak() { memory_use_.most = memory_use_.now; }

  template <class Kernel>
  void launch(const Kernel& kernel, Grid grid) {
    if (grid.x == 0 || grid.y == 0) return;
    const Current current(device_);
    std::size_t shared = 0;
    if constexpr (Kernel::kTogether) {
      shared = kernel.shared_bytes();
      allow_shared(reinterpret_cast<const void*>(&run_kernel<Kernel>), shared);
    }
    run_kernel<Kernel><<<dim3(grid.x, grid.y), Kernel::kThreads, shared, stream_>>>(kernel);
    check_cuda(cudaGetLastError(), "a kernel could not be started");
  }

 private:
  static void allow_shared(const void* kernel, std::size_t bytes);

  int device_;
  cudaStream_t stream_ = nullptr;
  MemoryUse memory_use_;
};

}  // namespace nescio::gpu
