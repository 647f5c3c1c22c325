#pragma once

// Products of weights and activations on a device (gpu/device.h), with the same results as on the
// CPU (product.h, activations.h). Weights are stored in device memory. A product owns all the
// memory that it uses, so that it can be recorded in a CUDA graph.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "bitserial/gpu/group_product_gpu.h"
#include "bitserial/gpu/plan_gpu.h"
#include "bitserial/gpu/product_gpu.h"
#include "bitserial/planes.h"
#include "gpu/device.h"
#include "gpu/memory_pool.h"

namespace nescio::bitserial {

/// A stream of the caller, a cudaStream_t as a number, or none for the stream of the device object.
using Stream = std::optional<std::uintptr_t>;

/// A device that holds weights. Throws Error(resource) if the device does not exist.
template <gpu::ComputeDevice Device>
class BitSerialDevice {
 public:
  explicit BitSerialDevice(unsigned device)
      : memory_(std::make_shared<gpu::MemoryPool<Device>>(device)) {}

  unsigned number() const { return memory_->number(); }
  const std::shared_ptr<gpu::MemoryPool<Device>>& memory() const { return memory_; }

 private:
  std::shared_ptr<gpu::MemoryPool<Device>> memory_;
};

/// Immutable weights in device memory. Safe to use from several threads.
template <gpu::ComputeDevice Device>
class DeviceBitMatrix {
 public:
  /// Copies planes, of `row_words` words per row, a scale per row, and a bias per row if `bias` is
  /// not null. With a `group` there is a scale [row][group] for so many columns of a row (groups.h).
  /// Throws Error(argument) as check_planes and check_group do, Error(resource) if the device is out
  /// of memory.
  DeviceBitMatrix(const BitSerialDevice<Device>& device, const Planes& planes,
                  std::size_t row_words, const float* scale, const float* bias,
                  std::size_t group = 0);

  std::size_t rows() const { return tiles_.rows; }
  std::size_t columns() const { return tiles_.columns; }
  unsigned bits() const { return tiles_.bits; }
  std::size_t packed_bytes() const {
    return group_ == 0 ? quads_->size() * sizeof(gpu::Quad)
                       : words_->size() * sizeof(std::uint64_t) + scale_.size() * sizeof(float);
  }

  /// The columns of a group; 0 for a scale per row.
  std::size_t group() const { return group_; }
  GroupPlanes planes() const {
    return {reinterpret_cast<const std::uint32_t*>(words_->data()),
            scale_.data(),
            tiles_.rows,
            tiles_.columns,
            tiles_.bits,
            static_cast<std::uint32_t>(group_)};
  }

  /// The weights without groups; with them, their shape only.
  const WeightTiles& tiles() const { return tiles_; }
  const float* scale() const { return scale_.data(); }
  const float* bias() const { return bias_ ? bias_->data() : nullptr; }
  const std::shared_ptr<gpu::MemoryPool<Device>>& memory() const { return memory_; }

  /// True if the caller is recording a graph from this stream.
  bool capturing(std::uintptr_t stream) const { return memory_->device().capturing(stream); }

  /// Declares that streams of the caller read the weights from now on.
  void share() {
    if (quads_) quads_->share();
    if (words_) words_->share();
    scale_.share();
    if (bias_) bias_->share();
  }

 private:
  template <class T>
  using Array = gpu::PooledBuffer<Device, T>;
  static WeightTiles checked_tiles(const Planes& planes, std::size_t row_words);
  static std::size_t checked_group(std::size_t group);
  void pack(const Planes& planes, std::size_t row_words);

  std::shared_ptr<gpu::MemoryPool<Device>> memory_;
  WeightTiles tiles_;
  std::size_t group_;
  std::optional<Array<gpu::Quad>> quads_;      // without groups
  std::optional<Array<std::uint64_t>> words_;  // with groups
  Array<float> scale_;
  std::optional<Array<float>> bias_;
};

/// Products of a matrix and batches of one size and one precision. They run one at a time, because
/// they share memory.
template <gpu::ComputeDevice Device>
class DeviceBitProduct {
 public:
  /// `kernel` is a name of kGpuKernels, or empty for the expected fastest; a matrix with groups has
  /// one kernel. Throws Error(argument) if `activation_bits` is not 8, 16 or 32, if the batch is
  /// empty or too large, and as GpuPlan does.
  DeviceBitProduct(std::shared_ptr<DeviceBitMatrix<Device>> matrix, unsigned activation_bits,
                   std::size_t batch, std::string_view kernel);

  std::size_t batch() const { return vectors_.batch; }
  unsigned activation_bits() const { return vectors_.bits; }
  std::string_view kernel() const { return plan_.kernel.name; }
  const DeviceBitMatrix<Device>& matrix() const { return *matrix_; }

  /// Multiplies vectors in host memory. Throws Error(argument) for a float that is not finite, or
  /// an integer that does not fit in the activation bits.
  void apply(const float* x, float* out);
  void multiply(const std::int32_t* x, std::int64_t* out);

  /// Multiplies vectors in device memory. With a stream of the caller the work is queued on it:
  /// nothing is allocated or waited for, and the caller must not use this object on another stream
  /// until the work is done. Without a stream, all work queued on the device is waited for first,
  /// and the product is finished on return. The products of a vector with an element that is not
  /// finite are NaN.
  void queue(const float* x, float* out, Stream stream);

  /// Allocates device memory for the products of a batch.
  std::shared_ptr<gpu::PooledBuffer<Device, float>> empty() const;

  /// Measures `count` products of zero vectors in a CUDA graph; returns the seconds per product.
  double seconds_each(unsigned count);

 private:
  template <class T>
  using Array = gpu::PooledBuffer<Device, T>;

  Device& device() { return matrix_->memory()->device(); }
  std::size_t inputs() const { return batch() * matrix_->columns(); }
  std::size_t outputs() const { return batch() * matrix_->rows(); }

  template <gpu::Kernel Kernel>
  void launch(const Kernel& kernel, Stream stream);
  void run(const float* x, float* out, Stream stream);
  void run_groups(const float* x, float* out, Stream stream);
  template <class Source>
  void write_vectors(const Source& source, Stream stream);
  template <template <unsigned> class Sums, bool fused>
  void run_product(const FloatVectors& source, const Products& to, Stream stream);
  template <template <unsigned> class Sums, unsigned tiles, bool fused>
  void run_slices(const FloatVectors& source, const Products& to, Stream stream);

  std::shared_ptr<DeviceBitMatrix<Device>> matrix_;
  GpuPlan plan_;
  VectorTiles vectors_;
  std::uint32_t blocks_;  ///< blocks of threads that pack one vector
  Array<Pair> tiles_;
  Array<double> steps_;
  std::mutex mutex_;
};

}  // namespace nescio::bitserial
