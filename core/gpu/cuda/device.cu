#include <dlfcn.h>

#include <string>

#include "base/error.h"
#include "gpu/cuda/device.h"

namespace nescio::gpu {
namespace {

/// Shared memory that a block may have without opting in.
constexpr std::size_t kDefaultSharedBytes = 48 << 10;

std::string megabytes(std::size_t bytes) { return std::to_string(bytes / 1000000) + " MB"; }

/// Returns true if this process has a context on the device. The runtime has no such query, so this
/// calls the driver's library, which is loaded by now.
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

/// A graph of the work that a stream has recorded, and events to time it.
class RecordedGraph {
 public:
  explicit RecordedGraph(cudaStream_t stream) {
    try {
      cudaGraph_t graph = nullptr;
      check_cuda(cudaStreamEndCapture(stream, &graph), "cannot record a graph");
      const cudaError_t status = cudaGraphInstantiate(&work_, graph, 0);
      cudaGraphDestroy(graph);
      check_cuda(status, "cannot make a graph");
      for (cudaEvent_t& event : events_)
        check_cuda(cudaEventCreate(&event), "cannot make an event");
    } catch (...) {
      release();
      throw;
    }
  }
  ~RecordedGraph() { release(); }
  RecordedGraph(const RecordedGraph&) = delete;
  RecordedGraph& operator=(const RecordedGraph&) = delete;

  /// Runs the work and returns its time in seconds.
  double replay(cudaStream_t stream) const {
    float milliseconds = 0;
    check_cuda(cudaEventRecord(events_[0], stream), "cannot time a graph");
    check_cuda(cudaGraphLaunch(work_, stream), "cannot launch a graph");
    check_cuda(cudaEventRecord(events_[1], stream), "cannot time a graph");
    check_cuda(cudaEventSynchronize(events_[1]), "work on a GPU failed");
    check_cuda(cudaEventElapsedTime(&milliseconds, events_[0], events_[1]), "cannot time a graph");
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
  cudaGetLastError();  // clears the error, so that the next call does not report it again
  // An error inside a kernel is sticky: every later call of this process fails with it.
  if (cudaGetLastError() != cudaSuccess || cudaStreamQuery(nullptr) == status) {
    throw Error(ErrorKind::device, message + "; restart this process");
  }
  throw Error(ErrorKind::resource, message);
}

CurrentDevice::CurrentDevice(int device) : device_(device) {
  check_cuda(cudaGetDevice(&before_), "cannot read the current GPU");
  if (before_ != device_) check_cuda(cudaSetDevice(device_), "cannot use a GPU");
}

CurrentDevice::~CurrentDevice() {
  if (before_ != device_ && has_context(before_)) cudaSetDevice(before_);
}

unsigned CudaDevice::count() {
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status == cudaErrorInsufficientDriver || status == cudaErrorNoDevice) {
    cudaGetLastError();
    throw Error(ErrorKind::resource, "no usable GPU: found no GPU, or no driver for CUDA " +
                                         std::to_string(CUDART_VERSION / 1000) + "." +
                                         std::to_string(CUDART_VERSION % 1000 / 10) + " or newer");
  }
  check_cuda(status, "no usable GPU");
  return static_cast<unsigned>(devices);
}

DeviceInfo CudaDevice::info(unsigned device) {
  const unsigned devices = count();
  if (device >= devices) {
    throw Error(ErrorKind::resource, "cuda:" + std::to_string(device) + " does not exist: found " +
                                         std::to_string(devices) + " GPUs");
  }
  cudaDeviceProp properties;
  check_cuda(cudaGetDeviceProperties(&properties, static_cast<int>(device)),
             "cannot read the properties of a GPU");
  return {properties.name,
          static_cast<unsigned>(properties.multiProcessorCount),
          static_cast<unsigned>(10 * properties.major + properties.minor),
          static_cast<std::size_t>(properties.l2CacheSize),
          properties.totalGlobalMem,
          properties.sharedMemPerBlockOptin};
}

CudaDevice::CudaDevice(unsigned device) : device_(static_cast<int>(device)), info_(info(device)) {
  const CurrentDevice current(device_);
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cannot make a stream");
}

CudaDevice::~CudaDevice() {
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

void* CudaDevice::allocate(std::size_t bytes) {
  const CurrentDevice current(device_);
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, bytes == 0 ? 1 : bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    throw Error(ErrorKind::resource, device_name(device_) + " is out of memory: requested " +
                                         megabytes(bytes) + ", free " + megabytes(free) + " of " +
                                         megabytes(total) +
                                         "; use smaller batches, or split the work over devices");
  }
  check_cuda(status, "cannot allocate memory of a GPU");
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
             "cannot allocate page-locked memory");
  return memory;
}

void CudaDevice::release_host(void* memory) noexcept {
  if (memory != nullptr) cudaFreeHost(memory);
}

void CudaDevice::upload(void* to, const void* from, std::size_t bytes) {
  const CurrentDevice current(device_);
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_),
             "a copy to a GPU failed");
}

void CudaDevice::upload_rows(void* to, const void* from, std::size_t stride, std::size_t bytes,
                             std::size_t rows) {
  const CurrentDevice current(device_);
  check_cuda(cudaMemcpy2DAsync(to, bytes, from, stride, bytes, rows, cudaMemcpyDefault, stream_),
             "a copy to a GPU failed");
}

void CudaDevice::download(void* to, const void* from, std::size_t bytes) {
  const CurrentDevice current(device_);
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_),
             "a copy from a GPU failed");
}

void CudaDevice::download_rows(void* to, const void* from, std::size_t stride, std::size_t bytes,
                               std::size_t rows) {
  const CurrentDevice current(device_);
  check_cuda(cudaMemcpy2DAsync(to, bytes, from, stride, bytes, rows, cudaMemcpyDefault, stream_),
             "a copy from a GPU failed");
}

void CudaDevice::copy(void* to, const void* from, std::size_t bytes) {
  const CurrentDevice current(device_);
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_),
             "a copy between GPUs failed");
}

void CudaDevice::zero(void* memory, std::size_t bytes) {
  const CurrentDevice current(device_);
  check_cuda(cudaMemsetAsync(memory, 0, bytes, stream_), "cannot clear memory of a GPU");
}

void CudaDevice::finish() {
  const CurrentDevice current(device_);
  check_cuda(cudaStreamSynchronize(stream_), "work on a GPU failed");
}

void CudaDevice::begin_graph() {
  const CurrentDevice current(device_);
  check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
             "cannot begin a graph");
}

void CudaDevice::drop_graph() noexcept {
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(stream_, &graph);
  if (graph != nullptr) cudaGraphDestroy(graph);
  cudaGetLastError();
}

double CudaDevice::seconds_of_graph() {
  constexpr int kReplays = 7;
  const CurrentDevice current(device_);
  const RecordedGraph recorded(stream_);
  double best = 0;
  for (int i = 0; i < kReplays; ++i) {
    const double taken = recorded.replay(stream_);
    if (i == 0 || taken < best) best = taken;
  }
  return best;
}

void CudaDevice::synchronize(unsigned device) {
  const CurrentDevice current(static_cast<int>(device));
  check_cuda(cudaDeviceSynchronize(), "earlier work on a GPU failed");
}

bool CudaDevice::capturing(std::uintptr_t stream) const {
  constexpr std::uintptr_t kLegacyStream = 1;  // cudaStreamLegacy; neither it nor 0 can be captured
  if (stream <= kLegacyStream) return false;
  const CurrentDevice current(device_);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(reinterpret_cast<cudaStream_t>(stream), &status),
             "cannot read the capture status of a stream");
  return status != cudaStreamCaptureStatusNone;
}

/// Caches the answers of the driver, which take microseconds and are needed before each launch.
unsigned CudaDevice::resident_blocks_of(const void* kernel, unsigned threads,
                                        std::size_t shared) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  unsigned& known = resident_[{kernel, shared}];
  if (known > 0) return known;
  const CurrentDevice current(device_);
  allow_shared(kernel, shared);
  int blocks = 0;
  check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel,
                                                           static_cast<int>(threads), shared),
             "cannot read how many blocks a GPU holds");
  known = blocks > 0 ? static_cast<unsigned>(blocks) : 1;
  return known;
}

void CudaDevice::allow_shared(const void* kernel, std::size_t bytes) const {
  if (bytes <= kDefaultSharedBytes) return;
  if (bytes > info_.shared_bytes_max) throw too_much_shared_memory(bytes, info_);
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(bytes)),
             "cannot reserve shared memory for a kernel");
}

}  // namespace nescio::gpu
