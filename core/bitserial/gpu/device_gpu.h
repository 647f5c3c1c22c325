#pragma once

// Products of weights with activations on a device (gpu/device.h), with the bits of the processor's
// (product.h, activations.h): weights that stand in its memory, and products with all the memory they
// want, so that a graph can record them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "bitserial/gpu/plan_gpu.h"
#include "bitserial/gpu/product_gpu.h"
#include "bitserial/planes.h"
#include "gpu/device.h"
#include "gpu/memory.h"

namespace nescio::bitserial {

/// A stream of the caller's: a cudaStream_t as a number. None: the device's own.
using Stream = std::optional<std::uintptr_t>;

/// Where weights go. Throws Error(resource) if there is no such device.
template <class Device>
class BitSerialDevice {
 public:
  explicit BitSerialDevice(unsigned device)
      : memory_(std::make_shared<gpu::Memory<Device>>(device)) {}

  unsigned number() const { return memory_->number(); }
  const std::shared_ptr<gpu::Memory<Device>>& memory() const { return memory_; }

 private:
  std::shared_ptr<gpu::Memory<Device>> memory_;
};

/// Weights in a device's memory, which do not change. May be used from several threads.
template <class Device>
class DeviceBitMatrix {
 public:
  /// Copies planes, of `row_words` words a row, a scale a row, and a bias a row unless that is null.
  /// Throws Error(argument) as check_planes does, Error(resource) if the device's memory is short.
  DeviceBitMatrix(const BitSerialDevice<Device>& device, const Planes& planes,
                  std::size_t row_words, const float* scale, const float* bias);

  std::size_t rows() const { return tiles_.rows; }
  std::size_t columns() const { return tiles_.columns; }
  unsigned bits() const { return tiles_.bits; }
  std::size_t packed_bytes() const { return quads_.size() * sizeof(gpu::Quad); }

  const WeightTiles& tiles() const { return tiles_; }
  const float* scale() const { return scale_.data(); }
  const float* bias() const { return bias_ ? bias_->data() : nullptr; }
  const std::shared_ptr<gpu::Memory<Device>>& memory() const { return memory_; }

  /// From now on streams of the caller's read it.
  void show() {
    quads_.show();
    scale_.show();
    if (bias_) bias_->show();
  }

 private:
  template <class T>
  using Room = gpu::Room<Device, T>;
  static WeightTiles shape_of(const Planes& planes, std::size_t row_words);

  std::shared_ptr<gpu::Memory<Device>> memory_;
  WeightTiles tiles_;
  Room<gpu::Quad> quads_;
  Room<float> scale_;
  std::optional<Room<float>> bias_;
};

/// Products of a matrix with batches of one size and one precision. One at a time: they share memory.
template <class Device>
class DeviceBitProduct {
 public:
  /// `kernel` is a name of kGpuKernels, or empty for what is thought best. Throws Error(argument) for
  /// activations that are not of 8, 16 or 32 bits, no vector or too many, and as GpuPlan does.
  DeviceBitProduct(std::shared_ptr<DeviceBitMatrix<Device>> matrix, unsigned activation_bits,
                   std::size_t batch, std::string_view kernel);

  std::size_t batch() const { return vectors_.batch; }
  unsigned activation_bits() const { return vectors_.bits; }
  std::string_view kernel() const { return plan_.kernel.name; }
  const DeviceBitMatrix<Device>& matrix() const { return *matrix_; }

  /// Of vectors in the host's memory. Throws Error(argument) for what is not finite, or does not fit.
  void apply(const float* x, float* out);
  void multiply(const std::int32_t* x, std::int64_t* out);

  /// Of vectors in the device's memory. On a stream of the caller's it is queued, nothing is allocated
  /// or waited for, and it is the caller's to use this product on no other meanwhile. On the device's
  /// own, what others have queued is waited for first, and it is done on return. The products of a
  /// vector that is not finite are NaN.
  void queue(const float* x, float* out, Stream stream);

  /// Memory of the device for the products of a batch.
  std::shared_ptr<gpu::Room<Device, float>> empty() const;

  /// Seconds of each of `count` products in a graph, of vectors that nobody has set.
  double seconds_each(unsigned count);

 private:
  template <class T>
  using Room = gpu::Room<Device, T>;

  Device& device() { return matrix_->memory()->device(); }
  std::size_t inputs() const { return batch() * matrix_->columns(); }
  std::size_t outputs() const { return batch() * matrix_->rows(); }

  template <class Kernel>
  void launch(const Kernel& kernel, Stream stream);
  void run(const float* x, float* out, Stream stream);
  template <class Source>
  void write_vectors(const Source& source, Stream stream);
  template <template <unsigned> class Sums, bool fused>
  void run_product(const FloatVectors& source, const Products& to, Stream stream);
  template <template <unsigned> class Sums, unsigned tiles, bool fused>
  void run_slices(const FloatVectors& source, const Products& to, Stream stream);

  std::shared_ptr<DeviceBitMatrix<Device>> matrix_;
  GpuPlan plan_;
  VectorTiles vectors_;
  std::uint32_t blocks_;  ///< that write a vector's tiles
  Room<Pair> tiles_;
  Room<double> steps_;
  std::mutex mutex_;
};

}  // namespace nescio::bitserial
