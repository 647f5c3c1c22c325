#include <dlfcn.h>

#include <string>

#include "base/error.h"
#include "gpu/cuda/device.h"

namespace nescio::gpu {
namespace {

/// What a block may share without being asked twice.
constexpr std::size_t kPlainSharedBytes = 48 << 10;

std::string megabytes(std::size_t bytes) { return std::to_string(bytes / 1000000) + " MB"; }

/// Whether anyone in this process uses a device. Asked of the driver's library, which is loaded by
/// now; the runtime's has no such question.
bool has_context(int device) {
  using State = int (*)(int, unsigned*, int*);
  static const auto state = [] {
    void* driver = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
    return driver == nullptr ? nullptr
                             : reinterpret_cast<State>(dlsym(driver, "cuDevicePrimaryCtxGetState"));
  }();
  unsigned flags = 0;
  int active = 0;
  return state != nullptr && state(device, &flags, &active) == 0 && active != 0;
}

/// The work that a stream has recorded, and a clock for it.
class Recorded {
 public:
  explicit Recorded(cudaStream_t stream) {
    try {
      cudaGraph_t graph = nullptr;
      check_cuda(cudaStreamEndCapture(stream, &graph), "a graph could not be recorded");
      const cudaError_t status = cudaGraphInstantiate(&work_, graph, 0);
      cudaGraphDestroy(graph);
      check_cuda(status, "a graph could not be made");
      for (cudaEvent_t& event : events_) check_cuda(cudaEventCreate(&event), "there is no clock");
    } catch (...) {
      release();
      throw;
    }
  }
  ~Recorded() { release(); }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

  /// Runs the work, and returns the seconds that it took.
  double replay(cudaStream_t stream) const {
    float milliseconds = 0;
    check_cuda(cudaEventRecord(events_[0], stream), "a graph could not be timed");
    check_cuda(cudaGraphLaunch(work_, stream), "a graph could not be started");
    check_cuda(cudaEventRecord(events_[1], stream), "a graph could not be timed");
    check_cuda(cudaEventSynchronize(events_[1]), "work on a GPU failed");
    check_cuda(cudaEventElapsedTime(&milliseconds, events_[0], events_[1]),
               "a graph could not be timed");
    return static_cast<double>(milliseconds) * 1e-3;
  }

 private:
  void release() noexcept {
    for (const cudaEvent_t event : events_) {
      if (event != nullptr) cudaEventDestroy(event);
    }
    if (work_ != nullptr) cudaGraphExecDestroy(work_);
  }

  cudaGraphExec_t work_ = nullptr;
  cudaEvent_t events_[2] = {};
};

std::string device_name(int device) { return "cuda:" + std::to_string(device); }

}  // namespace

void check_cuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  const std::string message = std::string(what) + ": " + cudaGetErrorString(status);
  cudaGetLastError();  // so that the next call does not report it again
  // A kernel's fault stays with the process: whatever is asked of the card then fails with it.
  if (cudaGetLastError() != cudaSuccess || cudaStreamQuery(nullptr) == status) {
    throw Error(ErrorKind::device, message + "; start this process anew");
  }
  throw Error(ErrorKind::resource, message);
}

Current::Current(int device) : device_(device) {
  check_cuda(cudaGetDevice(&before_), "the current GPU is not known");
  if (before_ != device_) check_cuda(cudaSetDevice(device_), "a GPU cannot be used");
}

Current::~Current() {
  if (before_ != device_ && has_context(before_)) cudaSetDevice(before_);
}

unsigned CudaDevice::count() {
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status == cudaErrorInsufficientDriver || status == cudaErrorNoDevice) {
    cudaGetLastError();
    throw Error(ErrorKind::resource, "no GPU can be used: no card, or no driver for CUDA " +
                                         std::to_string(CUDART_VERSION / 1000) + "." +
                                         std::to_string(CUDART_VERSION % 1000 / 10) +
                                         " or newer, was found");
  }
  check_cuda(status, "no GPU can be used");
  return static_cast<unsigned>(devices);
}

DeviceInfo CudaDevice::info(unsigned device) {
  const unsigned devices = count();
  if (device >= devices) {
    throw Error(ErrorKind::resource, "there is no cuda:" + std::to_string(device) + ": found " +
                                         std::to_string(devices) + " GPUs");
  }
  cudaDeviceProp properties;
  check_cuda(cudaGetDeviceProperties(&properties, static_cast<int>(device)),
             "a GPU does not say what it is");
  return {properties.name,
          static_cast<unsigned>(properties.multiProcessorCount),
          static_cast<unsigned>(10 * properties.major + properties.minor),
          static_cast<std::size_t>(properties.l2CacheSize),
          properties.totalGlobalMem,
          properties.sharedMemPerBlockOptin};
}

CudaDevice::CudaDevice(unsigned device) : device_(static_cast<int>(device)), info_(info(device)) {
  const Current current(device_);
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
             "a stream could not be made");
}

CudaDevice::~CudaDevice() {
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
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
                    " are free; give it less at a time, or split it over devices");
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

void CudaDevice::upload_rows(void* to, const void* from, std::size_t stride, std::size_t bytes,
                             std::size_t rows) {
  const Current current(device_);
  check_cuda(cudaMemcpy2DAsync(to, bytes, from, stride, bytes, rows, cudaMemcpyDefault, stream_),
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

void CudaDevice::copy(void* to, const void* from, std::size_t bytes) {
  const Current current(device_);
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_),
             "a copy between GPUs failed");
}

void CudaDevice::zero(void* memory, std::size_t bytes) {
  const Current current(device_);
  check_cuda(cudaMemsetAsync(memory, 0, bytes, stream_), "memory of a GPU cannot be cleared");
}

void CudaDevice::finish() {
  const Current current(device_);
  check_cuda(cudaStreamSynchronize(stream_), "work on a GPU failed");
}

void CudaDevice::begin_graph() {
  const Current current(device_);
  check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
             "a graph could not be begun");
}

void CudaDevice::drop_graph() noexcept {
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(stream_, &graph);
  if (graph != nullptr) cudaGraphDestroy(graph);
  cudaGetLastError();
}

double CudaDevice::seconds_of_graph() {
  constexpr int kReplays = 7;
  const Current current(device_);
  const Recorded recorded(stream_);
  double best = 0;
  for (int i = 0; i < kReplays; ++i) {
    const double taken = recorded.replay(stream_);
    if (i == 0 || taken < best) best = taken;
  }
  return best;
}

void CudaDevice::synchronize(unsigned device) {
  const Current current(static_cast<int>(device));
  check_cuda(cudaDeviceSynchronize(), "earlier work on a GPU failed");
}

bool CudaDevice::capturing(std::uintptr_t stream) const {
  constexpr std::uintptr_t kLegacyStream = 1;  // cudaStreamLegacy; neither it nor 0 can be captured
  if (stream <= kLegacyStream) return false;
  const Current current(device_);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(reinterpret_cast<cudaStream_t>(stream), &status),
             "the capture status of a stream cannot be read");
  return status != cudaStreamCaptureStatusNone;
}

/// The driver takes microseconds to answer, and a kernel asks before each launch.
unsigned CudaDevice::resident_blocks_of(const void* kernel, unsigned threads,
                                        std::size_t shared) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  unsigned& known = resident_[{kernel, shared}];
  if (known > 0) return known;
  const Current current(device_);
  allow_shared(kernel, shared);
  int blocks = 0;
  check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel,
                                                           static_cast<int>(threads), shared),
             "a GPU does not say how many blocks it holds");
  known = blocks > 0 ? static_cast<unsigned>(blocks) : 1;
  return known;
}

void CudaDevice::allow_shared(const void* kernel, std::size_t bytes) const {
  if (bytes <= kPlainSharedBytes) return;
  if (bytes > info_.shared_bytes_max) throw too_much_shared(bytes, info_);
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(bytes)),
             "a kernel's shared memory cannot be had");
}

}  // namespace nescio::gpu
