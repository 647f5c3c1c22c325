#pragma once

// An NVIDIA GPU as a device. Every call is checked, memory is plain device memory, and all work is
// queued on one stream. Compiled by nvcc only.

#include <cuda_runtime.h>

#include <map>
#include <mutex>
#include <utility>

#include "gpu/cuda/block.h"
#include "gpu/device.h"

namespace nescio::gpu {

/// Throws Error(resource), naming what was tried, unless `status` is success.
void check_cuda(cudaError_t status, const char* what);

/// Makes a device the current one for a while: its caller may be at work on another, and gets that
/// back if it has been used at all. (To name a device that has not would make a context there.)
class Current {
 public:
  explicit Current(int device);
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  int before_ = 0;
  int device_;
};

/// Blocks that a processor is to have registers for at once; a kernel may ask for more than one.
template <class Kernel>
constexpr unsigned least_blocks() {
  if constexpr (requires { Kernel::kMinBlocks; }) return Kernel::kMinBlocks;
  return 1;
}

/// Runs a kernel for one thread of a grid.
template <class Kernel>
__global__ void __launch_bounds__(Kernel::kThreads, least_blocks<Kernel>())
    run_kernel(const __grid_constant__ Kernel kernel) {
  CudaBlock block;
  kernel(block);
}

class CudaDevice {
 public:
  using Block = CudaBlock;
  static constexpr unsigned kLoad = 16;
  static constexpr bool kReadsCuda = true;

  /// Throws Error(resource) if there is no such device, saying why.
  explicit CudaDevice(unsigned device);
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  /// Devices that can be used. Throws Error(resource), saying why, if there is none.
  static unsigned count();

  /// What a device is, without beginning to use it. Throws Error(resource) if it is not there.
  static DeviceInfo info(unsigned device);

  void* allocate(std::size_t bytes);
  void release(void* memory, std::size_t bytes) noexcept;
  static void* allocate_host(std::size_t bytes);
  static void release_host(void* memory) noexcept;
  void upload(void* to, const void* from, std::size_t bytes);
  void upload_rows(void* to, const void* from, std::size_t stride, std::size_t bytes,
                   std::size_t rows);
  void download(void* to, const void* from, std::size_t bytes);
  void download_rows(void* to, const void* from, std::size_t stride, std::size_t bytes,
                     std::size_t rows);
  void copy(void* to, const void* from, std::size_t bytes);
  void zero(void* memory, std::size_t bytes);
  void finish();
  static void synchronize(unsigned device);
  /// True if the caller is recording a graph from this stream.
  bool capturing(std::uintptr_t stream) const;
  MemoryUse memory_use() const { return memory_use_; }
  void forget_peak() { memory_use_.most = memory_use_.now; }

  template <class Kernel>
  void launch(const Kernel& kernel, Grid grid) {
    launch_in(stream_, kernel, grid);
  }
  template <class Kernel>
  void launch_on(std::uintptr_t stream, const Kernel& kernel, Grid grid) {
    launch_in(reinterpret_cast<cudaStream_t>(stream), kernel, grid);
  }

  template <class Work>
  double seconds_each(unsigned count, const Work& work) {
    begin_graph();
    try {
      for (unsigned i = 0; i < count; ++i) work();
    } catch (...) {
      drop_graph();
      throw;
    }
    return seconds_of_graph() / count;
  }

  template <class Kernel>
  unsigned resident_blocks(const Kernel& kernel) const {
    return resident_blocks_of(reinterpret_cast<const void*>(&run_kernel<Kernel>), Kernel::kThreads,
                              kernel.shared_bytes());
  }

 private:
  unsigned resident_blocks_of(const void* kernel, unsigned threads, std::size_t shared) const;
  void allow_shared(const void* kernel, std::size_t bytes) const;

  /// What is queued from now on is recorded, until it is timed or dropped.
  void begin_graph();
  void drop_graph() noexcept;
  /// The least seconds that a replay of the recorded work took.
  double seconds_of_graph();

  template <class Kernel>
  void launch_in(cudaStream_t stream, const Kernel& kernel, Grid grid) {
    if (grid.x == 0 || grid.y == 0) return;
    const Current current(device_);
    std::size_t shared = 0;
    if constexpr (Kernel::kCooperative) {
      shared = kernel.shared_bytes();
      allow_shared(reinterpret_cast<const void*>(&run_kernel<Kernel>), shared);
    }
    auto* argument = const_cast<Kernel*>(&kernel);  // it is copied
    void* arguments[] = {argument};
    check_cuda(
        cudaLaunchKernel(reinterpret_cast<const void*>(&run_kernel<Kernel>), dim3(grid.x, grid.y),
                         dim3(Kernel::kThreads), arguments, shared, stream),
        "a kernel could not be started");
  }

  int device_;
  DeviceInfo info_;
  cudaStream_t stream_ = nullptr;
  MemoryUse memory_use_;
  mutable std::mutex mutex_;  ///< guards what follows
  mutable std::map<std::pair<const void*, std::size_t>, unsigned> resident_;  ///< by shared bytes
};

}  // namespace nescio::gpu
