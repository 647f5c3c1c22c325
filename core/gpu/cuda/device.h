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

/// Throws Error(resource), or Error(device) after which the process must restart, unless `status` is
/// success. The message begins with `what`.
void check_cuda(cudaError_t status, const char* what);

/// Makes a device the current one in this scope. The caller's device is restored only if it has a
/// context: cudaSetDevice would otherwise create one.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = 0;
  int device_;
};

/// The kernel's kMinBlocks, or 1.
template <Kernel K>
constexpr unsigned min_blocks() {
  if constexpr (requires { K::kMinBlocks; }) return K::kMinBlocks;
  return 1;
}

/// Runs a kernel for one thread of a grid.
template <Kernel K>
__global__ void __launch_bounds__(K::kThreads, min_blocks<K>())
    run_kernel(const __grid_constant__ K kernel) {
  CudaBlock block;
  kernel(block);
}

class CudaDevice {
 public:
  using Block = CudaBlock;
  static constexpr unsigned kMeasurementScale = 16;
  static constexpr bool kReadsCuda = true;

  /// Throws Error(resource) if the device does not exist or cannot be used.
  explicit CudaDevice(unsigned device);
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  /// The number of usable devices. Throws Error(resource) with the reason if there is none.
  static unsigned count();

  /// Properties of a device, read without making a context. Throws Error(resource) if the device does
  /// not exist.
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
  /// Returns true if the caller is recording a graph from this stream.
  bool capturing(std::uintptr_t stream) const;
  MemoryUse memory_use() const { return memory_use_; }
  void reset_peak() { memory_use_.peak = memory_use_.now; }

  template <Kernel K>
  void launch(const K& kernel, Grid grid) {
    launch_in(stream_, kernel, grid);
  }
  template <Kernel K>
  void launch_on(std::uintptr_t stream, const K& kernel, Grid grid) {
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

  template <Kernel K>
  unsigned resident_blocks(const K& kernel) const {
    return resident_blocks_of(reinterpret_cast<const void*>(&run_kernel<K>), K::kThreads,
                              kernel.shared_bytes());
  }

 private:
  unsigned resident_blocks_of(const void* kernel, unsigned threads, std::size_t shared) const;
  void allow_shared(const void* kernel, std::size_t bytes) const;

  /// Records the work that is queued from now on, until the graph is timed or dropped.
  void begin_graph();
  void drop_graph() noexcept;
  /// Seconds of the fastest replay of the recorded work.
  double seconds_of_graph();

  template <Kernel K>
  void launch_in(cudaStream_t stream, const K& kernel, Grid grid) {
    if (grid.x == 0 || grid.y == 0) return;
    const CurrentDevice current(device_);
    std::size_t shared = 0;
    if constexpr (K::kCooperative) {
      shared = kernel.shared_bytes();
      allow_shared(reinterpret_cast<const void*>(&run_kernel<K>), shared);
    }
    auto* argument = const_cast<K*>(&kernel);  // CUDA copies it
    void* arguments[] = {argument};
    check_cuda(cudaLaunchKernel(reinterpret_cast<const void*>(&run_kernel<K>), dim3(grid.x, grid.y),
                                dim3(K::kThreads), arguments, shared, stream),
               "cannot launch a kernel");
  }

  int device_;
  DeviceInfo info_;
  cudaStream_t stream_ = nullptr;
  MemoryUse memory_use_;
  mutable std::mutex mutex_;  ///< guards the member below
  mutable std::map<std::pair<const void*, std::size_t>, unsigned> resident_;  ///< by shared bytes
};

static_assert(ComputeDevice<CudaDevice>);

}  // namespace nescio::gpu
