#include <string>

#include "base/error.h"
#include "gpu/cuda_device.h"

namespace nescio::gpu {
namespace {

/// What a block may share without being asked twice.
constexpr std::size_t kPlainSharedBytes = 48 << 10;

std::string megabytes(std::size_t bytes) { return std::to_string(bytes / 1000000) + " MB"; }

std::string device_name(int device) { return "cuda:" + std::to_string(device); }

}  // namespace

void check_cuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // so that the next call does not report it again
  throw Error(ErrorKind::resource, std::string(what) + ": " + cudaGetErrorString(status));
}

Current::Current(int device) {
  check_cuda(cudaGetDevice(&before_), "the current GPU is not known");
  check_cuda(cudaSetDevice(device), "a GPU cannot be used");
}

unsigned CudaDevice::count() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return static_cast<unsigned>(devices);
}

CudaDevice::CudaDevice(unsigned device) : device_(static_cast<int>(device)) {
  int devices = 0;
  check_cuda(cudaGetDeviceCount(&devices), "no GPU can be used");
  if (device_ >= devices) {
    throw Error(ErrorKind::resource, "there is no " + device_name(device_) + ": found " +
                                         std::to_string(devices) + " GPUs");
  }
  const Current current(device_);
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
             "a stream could not be made");
}

CudaDevice::~CudaDevice() {
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

DeviceInfo CudaDevice::info() const {
  const Current current(device_);
  cudaDeviceProp properties;
  check_cuda(cudaGetDeviceProperties(&properties, device_), "a GPU does not say what it is");
  std::size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "a GPU does not say what memory it has");
  return {properties.name,
          static_cast<unsigned>(properties.multiProcessorCount),
          static_cast<unsigned>(10 * properties.major + properties.minor),
          static_cast<std::size_t>(properties.l2CacheSize),
          total,
          free,
          properties.sharedMemPerBlockOptin};
}

void* CudaDevice::allocate(std::size_t bytes) {
  const Current current(device_);
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, bytes == 0 ? 1 : bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    throw Error(ErrorKind::resource,
                device_name(device_) + " is out of memory: " + megabytes(bytes) +
                    " were asked for, " + megabytes(free) + " of " + megabytes(total) +
                    " are free; serve fewer rows on it, or split them over devices");
  }
  check_cuda(status, "memory of a GPU cannot be had");
  memory_use_.add(bytes);
  return memory;
}

void CudaDevice::release(void* memory, std::size_t bytes) noexcept {
  memory_use_.now -= bytes;
  cudaFree(memory);  // waits for the kernels that use it
}

void* CudaDevice::allocate_host(std::size_t bytes) {
  void* memory = nullptr;
  check_cuda(cudaHostAlloc(&memory, bytes == 0 ? 1 : bytes, cudaHostAllocPortable),
             "memory that a GPU can read cannot be had");
  return memory;
}

void CudaDevice::release_host(void* memory) noexcept {
  if (memory != nullptr) cudaFreeHost(memory);
}

void CudaDevice::upload(void* to, const void* from, std::size_t bytes) {
  const Current current(device_);
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_),
             "a copy to a GPU failed");
}

void CudaDevice::download(void* to, const void* from, std::size_t bytes) {
  const Current current(device_);
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_),
             "a copy from a GPU failed");
}

void CudaDevice::download_rows(void* to, const void* from, std::size_t stride, std::size_t bytes,
                               std::size_t rows) {
  const Current current(device_);
  check_cuda(cudaMemcpy2DAsync(to, bytes, from, stride, bytes, rows, cudaMemcpyDefault, stream_),
             "a copy from a GPU failed");
}

void CudaDevice::zero(void* memory, std::size_t bytes) {
  const Current current(device_);
  check_cuda(cudaMemsetAsync(memory, 0, bytes, stream_), "memory of a GPU cannot be cleared");
}

void CudaDevice::finish() {
  const Current current(device_);
  check_cuda(cudaStreamSynchronize(stream_), "work on a GPU failed");
}

void CudaDevice::settle() {
  const Current current(device_);
  check_cuda(cudaDeviceSynchronize(), "earlier work on a GPU failed");
}

void CudaDevice::allow_shared(const void* kernel, std::size_t bytes) {
  if (bytes <= kPlainSharedBytes) return;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(bytes)),
             "a kernel's shared memory cannot be had");
}

}  // namespace nescio::gpu
