// The body of bitserial/gpu/device_gpu.h, included once for each device.

#include <bit>
#include <limits>
#include <string>

#include "base/buffer.h"
#include "base/error.h"
#include "bitserial/activations.h"
#include "bitserial/gpu/device_gpu.h"
#include "bitserial/groups.h"

namespace nescio::bitserial {

inline Error argument_error(const std::string& what, const std::string& found,
                            const std::string& expected) {
  return Error(ErrorKind::argument, what + ": found " + found + ", expected " + expected);
}

template <gpu::ComputeDevice Device>
WeightTiles DeviceBitMatrix<Device>::checked_tiles(const Planes& planes, std::size_t row_words) {
  check_planes(planes, row_words);
  if (planes.rows > std::numeric_limits<std::int32_t>::max()) {
    throw argument_error("rows", std::to_string(planes.rows), "at most 2147483647");
  }
  return {nullptr, static_cast<std::uint32_t>(planes.rows),
          static_cast<std::uint32_t>(planes.columns), planes.bits};
}

template <gpu::ComputeDevice Device>
std::size_t DeviceBitMatrix<Device>::checked_group(std::size_t group) {
  if (group != 0) check_group(group);
  return group;
}

template <gpu::ComputeDevice Device>
DeviceBitMatrix<Device>::DeviceBitMatrix(const BitSerialDevice<Device>& device,
                                         const Planes& planes, std::size_t row_words,
                                         const float* scale, const float* bias, std::size_t group)
    : memory_(device.memory()),
      tiles_(checked_tiles(planes, row_words)),
      group_(checked_group(group)),
      scale_(memory_, planes.rows * (group == 0 ? 1 : ceil_div(planes.columns, group))) {
  if (bias != nullptr) bias_.emplace(memory_, planes.rows);
  Device& to = memory_->device();
  to.upload(scale_.data(), scale, scale_.size() * sizeof(float));
  if (bias_) to.upload(bias_->data(), bias, planes.rows * sizeof(float));
  const std::size_t words = planes.bits * planes.rows * row_words;
  if (group == 0) {
    pack(planes, row_words);
  } else {
    words_.emplace(memory_, words);
    to.upload(words_->data(), planes.words, words * sizeof(std::uint64_t));
  }
  to.finish();
}

template <gpu::ComputeDevice Device>
void DeviceBitMatrix<Device>::pack(const Planes& planes, std::size_t row_words) {
  quads_.emplace(memory_, tiles_.quad_count());
  tiles_.quads = quads_->data();
  const std::size_t words = planes.bits * planes.rows * row_words;
  const Array<std::uint64_t> copied(memory_, words);
  Device& to = memory_->device();
  to.upload(copied.data(), planes.words, words * sizeof(std::uint64_t));
  const PackWeights pack = {tiles_, reinterpret_cast<const std::uint32_t*>(copied.data()),
                            static_cast<std::uint32_t>(2 * row_words),
                            reinterpret_cast<std::uint32_t*>(quads_->data())};
  to.launch(pack, pack.grid());
  to.finish();
}

inline std::uint32_t checked_batch(std::size_t batch) {
  if (batch >= 1 && batch <= GpuPlan::kMaxBatch) return static_cast<std::uint32_t>(batch);
  throw argument_error("vectors of x", std::to_string(batch),
                       "1 to " + std::to_string(GpuPlan::kMaxBatch));
}

inline unsigned checked_bits(unsigned bits) {
  check_activation_bits(bits);
  return bits;
}

template <gpu::ComputeDevice Device>
DeviceBitProduct<Device>::DeviceBitProduct(std::shared_ptr<DeviceBitMatrix<Device>> matrix,
                                           unsigned activation_bits, std::size_t batch,
                                           std::string_view kernel)
    : matrix_(std::move(matrix)),
      plan_(Device::info(matrix_->memory()->number()), matrix_->tiles().columns,
            checked_bits(activation_bits), checked_batch(batch), kernel, matrix_->group() != 0),
      vectors_{checked_batch(batch), matrix_->tiles().columns, activation_bits, plan_.slice_tiles},
      blocks_(plan_.vector_blocks(Device::info(matrix_->memory()->number()),
                                  matrix_->tiles().columns, vectors_.batch)),
      tiles_(matrix_->memory(), vectors_.slices() * vectors_.slice_pairs()),
      steps_(matrix_->memory(), batch) {
  // The last slice may have tiles without a vector, which are read.
  device().zero(tiles_.data(), tiles_.size() * sizeof(Pair));
  device().finish();
}

template <gpu::ComputeDevice Device>
template <gpu::Kernel Kernel>
void DeviceBitProduct<Device>::launch(const Kernel& kernel, Stream stream) {
  if (stream) {
    device().launch_on(*stream, kernel, kernel.grid());
  } else {
    device().launch(kernel, kernel.grid());
  }
}

template <gpu::ComputeDevice Device>
template <template <unsigned> class Sums, unsigned tiles, bool fused>
void DeviceBitProduct<Device>::run_slices(const FloatVectors& source, const Products& to,
                                          Stream stream) {
  launch(BitProduct<Sums, tiles, fused>{matrix_->tiles(), vectors_, source, tiles_.data(),
                                        steps_.data(), to},
         stream);
}

template <gpu::ComputeDevice Device>
template <template <unsigned> class Sums, bool fused>
void DeviceBitProduct<Device>::run_product(const FloatVectors& source, const Products& to,
                                           Stream stream) {
  if (vectors_.slice_tiles == 1) return run_slices<Sums, 1, fused>(source, to, stream);
  if (vectors_.slice_tiles == 2) return run_slices<Sums, 2, fused>(source, to, stream);
  if constexpr (std::is_same_v<Sums<8>, MatrixSums<8>>) {
    if (vectors_.slice_tiles == 8) return run_slices<Sums, 8, fused>(source, to, stream);
  }
  run_slices<Sums, 4, fused>(source, to, stream);
}

template <gpu::ComputeDevice Device>
template <class Source>
void DeviceBitProduct<Device>::write_vectors(const Source& source, Stream stream) {
  launch(WriteVectors<Source>{source, vectors_, blocks_,
                              reinterpret_cast<std::uint32_t*>(tiles_.data()), steps_.data()},
         stream);
}

template <gpu::ComputeDevice Device>
void DeviceBitProduct<Device>::run(const float* x, float* out, Stream stream) {
  if (matrix_->group() != 0) return run_groups(x, out, stream);
  const FloatVectors source = {x};
  const Products to = {nullptr, out, matrix_->scale(), matrix_->bias()};
  if (plan_.kernel.fused) {
    return plan_.kernel.matrix ? run_product<MatrixSums, true>(source, to, stream)
                               : run_product<PopcountSums, true>(source, to, stream);
  }
  write_vectors(source, stream);
  plan_.kernel.matrix ? run_product<MatrixSums, false>(source, to, stream)
                      : run_product<PopcountSums, false>(source, to, stream);
}

template <gpu::ComputeDevice Device>
void DeviceBitProduct<Device>::run_groups(const float* x, float* out, Stream stream) {
  write_vectors(FloatVectors{x}, stream);
  launch(
      GroupProduct{matrix_->planes(), vectors_, tiles_.data(), steps_.data(), matrix_->bias(), out},
      stream);
}

template <gpu::ComputeDevice Device>
void DeviceBitProduct<Device>::queue(const float* x, float* out, Stream stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stream) {
    matrix_->share();
    tiles_.share();
    steps_.share();
    return run(x, out, stream);
  }
  Device::synchronize(matrix_->memory()->number());
  run(x, out, {});
  device().finish();
}

template <gpu::ComputeDevice Device>
void DeviceBitProduct<Device>::apply(const float* x, float* out) {
  for (std::size_t v = 0; v < batch(); ++v) {
    check_finite(x + v * matrix_->columns(), matrix_->columns(), v);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const Array<float> vectors(matrix_->memory(), inputs()), products(matrix_->memory(), outputs());
  device().upload(vectors.data(), x, inputs() * sizeof(float));
  run(vectors.data(), products.data(), {});
  device().download(out, products.data(), outputs() * sizeof(float));
  device().finish();
}

template <gpu::ComputeDevice Device>
void DeviceBitProduct<Device>::multiply(const std::int32_t* x, std::int64_t* out) {
  if (matrix_->group() != 0) {
    throw argument_error("integer vectors", "a matrix with groups", "one with a scale per row");
  }
  for (std::size_t v = 0; v < batch(); ++v) {
    check_range(x + v * matrix_->columns(), matrix_->columns(), activation_bits(), v);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const Array<std::int32_t> vectors(matrix_->memory(), inputs());
  const Array<std::int64_t> products(matrix_->memory(), outputs());
  device().upload(vectors.data(), x, inputs() * sizeof(std::int32_t));
  write_vectors(IntegerVectors{vectors.data()}, {});
  const Products to = {products.data(), nullptr, nullptr, nullptr};
  plan_.kernel.matrix ? run_product<MatrixSums, false>({nullptr}, to, {})
                      : run_product<PopcountSums, false>({nullptr}, to, {});
  device().download(out, products.data(), outputs() * sizeof(std::int64_t));
  device().finish();
}

template <gpu::ComputeDevice Device>
std::shared_ptr<gpu::PooledBuffer<Device, float>> DeviceBitProduct<Device>::empty() const {
  return std::make_shared<Array<float>>(matrix_->memory(), outputs());
}

template <gpu::ComputeDevice Device>
double DeviceBitProduct<Device>::seconds_each(unsigned count) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Array<float> vectors(matrix_->memory(), inputs()), products(matrix_->memory(), outputs());
  device().zero(vectors.data(), inputs() * sizeof(float));
  device().finish();
  return device().seconds_each(count, [&] { run(vectors.data(), products.data(), {}); });
}

}  // namespace nescio::bitserial
