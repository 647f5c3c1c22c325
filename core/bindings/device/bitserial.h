#pragma once

// The bindings of bit-serial products on a device, the same for every kind of device.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "bindings/bindings.h"
#include "bitserial/gpu/device_gpu.h"
#include "bitserial/groups.h"

namespace nescio::bindings {

/// The bindings for one kind of device.
template <gpu::ComputeDevice Device>
struct BitSerialBindings {
  using Owner = bitserial::BitSerialDevice<Device>;
  using Matrix = bitserial::DeviceBitMatrix<Device>;
  using Product = bitserial::DeviceBitProduct<Device>;

  using PlaneArray = InArray<std::uint64_t, nb::ndim<3>>;
  using Floats = InArray<float, nb::ndim<1>>;
  using HostVectors = InArray<float, nb::ndim<2>>;
  using HostIntegers = InArray<std::int32_t, nb::ndim<2>>;
  using AnyVectors = nb::ndarray<const float, nb::c_contig, nb::ndim<2>>;
  using AnyProducts = nb::ndarray<float, nb::c_contig, nb::ndim<2>>;
  template <class T>
  using HostProducts = nb::ndarray<nb::numpy, T, nb::c_contig, nb::ndim<2>>;
  using DeviceProducts = nb::ndarray<nb::array_api, float, nb::c_contig, nb::ndim<2>>;

  static void check(const std::string& what, std::size_t found, std::size_t expected) {
    if (found == expected) return;
    throw Error(ErrorKind::argument, what + ": found " + std::to_string(found) + ", expected " +
                                         std::to_string(expected));
  }

  template <class Array>
  static void check_shape(const std::string& what, const Array& array, std::size_t rows,
                          std::size_t columns) {
    check("vectors of " + what, array.shape(0), rows);
    check("columns of " + what, array.shape(1), columns);
  }

  static std::shared_ptr<Matrix> upload(const Owner& self, const PlaneArray& planes,
                                        std::size_t columns, const Floats& scale,
                                        const std::optional<Floats>& bias, std::size_t group) {
    if (group != 0) bitserial::check_group(group);
    const std::size_t groups = group == 0 ? 1 : (columns + group - 1) / group;
    check("scale", scale.size(), planes.shape(1) * groups);
    if (bias) check("bias", bias->size(), planes.shape(1));
    const auto bits = static_cast<unsigned>(std::min<std::size_t>(planes.shape(0), 1000));
    const nb::gil_scoped_release release;
    return std::make_shared<Matrix>(
        self, bitserial::Planes{planes.data(), planes.shape(1), columns, bits}, planes.shape(2),
        scale.data(), bias ? bias->data() : nullptr, group);
  }

  static std::unique_ptr<Product> product(const std::shared_ptr<Matrix>& matrix,
                                          unsigned activation_bits, std::size_t batch,
                                          const std::optional<std::string>& kernel) {
    const nb::gil_scoped_release release;
    return std::make_unique<Product>(matrix, activation_bits, batch, kernel.value_or(""));
  }

  /// Returns the products of vectors in host memory as an array that owns them.
  template <class T, class Array, class Work>
  static HostProducts<T> on_host(const Product& product, const Array& x, const Work& work) {
    check_shape("x", x, product.batch(), product.matrix().columns());
    auto owned =
        std::make_unique<Buffer<T>>(checked_product(product.batch(), product.matrix().rows()));
    T* data = owned->data();
    {
      const nb::gil_scoped_release release;
      work(x.data(), data);
    }
    nb::capsule owner(owned.release(), [](void* p) noexcept { delete static_cast<Buffer<T>*>(p); });
    return HostProducts<T>(data, {product.batch(), product.matrix().rows()}, owner);
  }

  static HostProducts<float> apply(Product& self, const HostVectors& x) {
    return on_host<float>(self, x, [&](const float* from, float* to) { self.apply(from, to); });
  }
  static HostProducts<std::int64_t> multiply(Product& self, const HostIntegers& x) {
    return on_host<std::int64_t>(
        self, x, [&](const std::int32_t* from, std::int64_t* to) { self.multiply(from, to); });
  }

  static int memory_type() {
    return Device::kReadsCuda ? nb::device::cuda::value : nb::device::cpu::value;
  }
  static int memory_number(const Product& product) {
    return Device::kReadsCuda ? static_cast<int>(product.matrix().memory()->number()) : 0;
  }

  template <class Array>
  static void check_memory(const std::string& what, const Array& array, const Product& product) {
    if (array.device_type() == memory_type() && array.device_id() == memory_number(product)) return;
    throw Error(ErrorKind::argument, what + " is not in the memory of device " +
                                         std::to_string(product.matrix().memory()->number()) +
                                         " of this kind");
  }

  static void queue(Product& self, const AnyVectors& x, const AnyProducts& out,
                    bitserial::Stream stream) {
    check_memory("x", x, self);
    check_memory("out", out, self);
    check_shape("x", x, self.batch(), self.matrix().columns());
    check_shape("out", out, self.batch(), self.matrix().rows());
    const nb::gil_scoped_release release;
    self.queue(x.data(), out.data(), stream);
  }

  static DeviceProducts empty(const Product& self) {
    using Products = gpu::PooledBuffer<Device, float>;
    auto products = std::make_unique<std::shared_ptr<Products>>(self.empty());
    (*products)->share();
    float* data = (*products)->data();
    nb::capsule owner(products.release(),
                      [](void* p) noexcept { delete static_cast<std::shared_ptr<Products>*>(p); });
    return DeviceProducts(data, {self.batch(), self.matrix().rows()}, owner, {}, nb::dtype<float>(),
                          memory_type(), memory_number(self));
  }

  static void bind_matrix(nb::module_& m) {
    nb::class_<Matrix>(m, "DeviceBitMatrix", "Weights of 1 to 8 bits in a device's memory.")
        .def_prop_ro("rows", &Matrix::rows)
        .def_prop_ro("columns", &Matrix::columns)
        .def_prop_ro("bits", &Matrix::bits)
        .def_prop_ro("packed_bytes", &Matrix::packed_bytes, "Bytes that a product reads.")
        .def("capturing", &Matrix::capturing, nb::arg("stream"),
             "True while a graph is captured from the stream of that number.")
        .def("product", &product, nb::arg("activation_bits"), nb::arg("batch") = 1,
             nb::arg("kernel") = nb::none(),
             "Return an object that multiplies it with batches of one size and precision.");
  }

  static void bind_product(nb::module_& m) {
    nb::class_<Product>(m, "DeviceBitProduct",
                        "Products of a matrix with batches of one size and precision.")
        .def_prop_ro("batch", &Product::batch)
        .def_prop_ro("activation_bits", &Product::activation_bits)
        .def_prop_ro("kernel", [](const Product& self) { return std::string(self.kernel()); })
        .def("apply", &apply, nb::arg("x").noconvert(),
             "Return the products of float vectors in host memory.")
        .def("multiply", &multiply, nb::arg("x").noconvert(),
             "Return the exact products of integer vectors in host memory.")
        .def("queue", &queue, nb::arg("x").noconvert(), nb::arg("out").noconvert(),
             nb::arg("stream") = nb::none(),
             "Multiply float vectors in device memory: queued on the given stream, or at once.")
        .def("empty", &empty, "Return an array for products in device memory.")
        .def("seconds_each", &Product::seconds_each, nb::arg("count"),
             nb::call_guard<nb::gil_scoped_release>(),
             "Measure the seconds of a product in a graph.");
  }

  static void bind(nb::module_& m) {
    nb::list names;
    for (const auto& kernel : bitserial::kGpuKernels) {
      names.append(nb::str(kernel.name.data(), kernel.name.size()));
    }
    m.attr("BITSERIAL_KERNELS") = nb::tuple(names);
    bind_matrix(m);
    bind_product(m);
    nb::class_<Owner>(m, "BitSerialDevice", "Products of low-bit weights on a device.")
        .def(nb::init<unsigned>(), nb::arg("device"), nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("number", &Owner::number, "The device's number.")
        .def("upload", &upload, nb::arg("planes").noconvert(), nb::arg("columns"),
             nb::arg("scale").noconvert(), nb::arg("bias").noconvert().none() = nb::none(),
             nb::arg("group") = 0,
             "Copy planes (bit, row, column / 64), a bias per row, and a scale per row, or per row "
             "and group of columns.");
  }
};

template <gpu::ComputeDevice Device>
void bind_bitserial_device(nb::module_& m) {
  BitSerialBindings<Device>::bind(m);
}

}  // namespace nescio::bindings
