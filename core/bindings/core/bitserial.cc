#include <algorithm>

#include "base/error.h"
#include "base/thread_pool.h"
#include "bindings/bindings.h"
#include "bitserial/group_matrix.h"
#include "bitserial/matrix.h"

namespace nescio::bindings {
namespace {

using bitserial::BitMatrix;
using bitserial::GroupMatrix;
using PlaneArray = InArray<std::uint64_t, nb::ndim<3>>;
template <class T>
using Vectors = InArray<T, nb::ndim<2>>;
template <class T>
using OutRows = nb::ndarray<T, nb::numpy, nb::c_contig, nb::ndim<2>>;
template <class T>
using RowsInPlace = nb::ndarray<T, nb::c_contig, nb::device::cpu, nb::ndim<2>>;
using OutSteps = nb::ndarray<double, nb::numpy, nb::c_contig, nb::ndim<1>>;
using Name = std::optional<std::string>;

[[noreturn]] void refuse(const std::string& what, const std::string& found,
                         const std::string& expected) {
  throw Error(ErrorKind::argument, what + ": found " + found + ", expected " + expected);
}

std::string shape_name(std::size_t rows, std::size_t columns) {
  return "(" + std::to_string(rows) + ", " + std::to_string(columns) + ")";
}

void check_length(const char* what, std::size_t found, std::size_t expected) {
  if (found != expected) refuse(what, std::to_string(found), std::to_string(expected));
}

/// Returns a NumPy array that owns `buffer`.
template <class T, class... Size>
auto own(Buffer<T>&& buffer, Size... size) {
  auto owned = std::make_unique<Buffer<T>>(std::move(buffer));
  T* data = owned->data();
  nb::capsule owner(owned.release(), [](void* p) noexcept { delete static_cast<Buffer<T>*>(p); });
  return nb::ndarray<T, nb::numpy, nb::c_contig, nb::ndim<sizeof...(size)>>(
      data, {static_cast<std::size_t>(size)...}, owner);
}

/// The output of products: the caller's array, or a new one.
template <class T>
class Products {
 public:
  Products(std::size_t batch, std::size_t rows, std::optional<RowsInPlace<T>>&& out)
      : batch_(batch), rows_(rows), out_(std::move(out)) {
    if (!out_) {
      own_ = Buffer<T>(checked_product(batch, rows));
    } else if (out_->shape(0) != batch || out_->shape(1) != rows) {
      refuse("shape of out", shape_name(out_->shape(0), out_->shape(1)), shape_name(batch, rows));
    }
  }

  T* data() { return out_ ? out_->data() : own_.data(); }
  OutRows<T> take() {
    return out_ ? OutRows<T>(out_->handle()) : own(std::move(own_), batch_, rows_);
  }

 private:
  std::size_t batch_, rows_;
  std::optional<RowsInPlace<T>> out_;
  Buffer<T> own_;
};

/// Returns the number of vectors of a batch.
template <class T>
std::size_t batch_of(const Vectors<T>& x, std::size_t columns) {
  check_length("columns of x", x.shape(1), columns);
  if (x.shape(0) == 0) refuse("vectors of x", "0", "at least 1");
  return x.shape(0);
}

BitMatrix make_matrix(const PlaneArray& planes, std::size_t columns, const Name& tier,
                      const Name& kernel) {
  const auto bits = static_cast<unsigned>(std::min<std::size_t>(planes.shape(0), 1000));
  const Tier chosen = tier_of(tier);
  const nb::gil_scoped_release release;
  return BitMatrix({planes.data(), planes.shape(1), columns, bits}, planes.shape(2), chosen,
                   kernel.value_or(""));
}

std::string kernel_name(const BitMatrix& matrix, unsigned activation_bits, std::size_t batch) {
  if (batch == 0) refuse("batch", "0", "at least 1");
  return matrix.kernel(activation_bits);
}

OutRows<std::int64_t> multiply(const BitMatrix& matrix, const Vectors<std::int32_t>& x,
                               unsigned activation_bits, ThreadPool& pool,
                               std::optional<RowsInPlace<std::int64_t>> out) {
  const std::size_t batch = batch_of(x, matrix.columns());
  Products<std::int64_t> y(batch, matrix.rows(), std::move(out));
  {
    const nb::gil_scoped_release release;
    matrix.multiply(x.data(), batch, activation_bits, y.data(), pool);
  }
  return y.take();
}

using Floats = InArray<float, nb::ndim<1>>;

OutRows<float> apply(const BitMatrix& matrix, const Vectors<float>& x, unsigned activation_bits,
                     const Floats& scale, const std::optional<Floats>& bias, ThreadPool& pool,
                     std::optional<RowsInPlace<float>> out) {
  const std::size_t batch = batch_of(x, matrix.columns());
  check_length("scale", scale.size(), matrix.rows());
  if (bias) check_length("bias", bias->size(), matrix.rows());
  Products<float> y(batch, matrix.rows(), std::move(out));
  {
    const nb::gil_scoped_release release;
    matrix.apply(x.data(), batch, activation_bits, scale.data(), bias ? bias->data() : nullptr,
                 y.data(), pool);
  }
  return y.take();
}

using Halves = InArray<std::uint16_t, nb::ndim<2>>;

GroupMatrix make_groups(const PlaneArray& planes, std::size_t columns, const Halves& scale,
                        std::size_t group, const Name& tier) {
  const auto bits = static_cast<unsigned>(std::min<std::size_t>(planes.shape(0), 1000));
  const Tier chosen = tier_of(tier);
  bitserial::check_group(group);
  const std::size_t groups = (columns + group - 1) / group;
  if (scale.shape(0) != planes.shape(1) || scale.shape(1) != groups) {
    refuse("shape of scale", shape_name(scale.shape(0), scale.shape(1)),
           shape_name(planes.shape(1), groups));
  }
  const nb::gil_scoped_release release;
  return GroupMatrix({planes.data(), planes.shape(1), columns, bits}, planes.shape(2), scale.data(),
                     group, chosen);
}

OutRows<float> apply_groups(const GroupMatrix& matrix, const Vectors<float>& x,
                            unsigned activation_bits, const std::optional<Floats>& bias,
                            ThreadPool& pool, std::optional<RowsInPlace<float>> out) {
  const std::size_t batch = batch_of(x, matrix.columns());
  if (bias) check_length("bias", bias->size(), matrix.rows());
  Products<float> y(batch, matrix.rows(), std::move(out));
  {
    const nb::gil_scoped_release release;
    matrix.apply(x.data(), batch, activation_bits, bias ? bias->data() : nullptr, y.data(), pool);
  }
  return y.take();
}

std::pair<OutRows<std::int32_t>, OutSteps> quantize_activations(const Vectors<float>& x,
                                                                unsigned activation_bits,
                                                                const Name& tier) {
  bitserial::check_activation_bits(activation_bits);
  const bitserial::FloatKernels& kernels = bitserial::float_kernels(tier_of(tier));
  const std::size_t batch = x.shape(0), n = x.shape(1);
  Buffer<std::int32_t> integers(checked_product(batch, n));
  Buffer<double> steps(batch);
  {
    const nb::gil_scoped_release release;
    for (std::size_t v = 0; v < batch; ++v) {
      steps[v] = bitserial::quantize_vector(kernels, x.data() + v * n, n, activation_bits, v,
                                            integers.data() + v * n);
    }
  }
  return {own(std::move(integers), batch, n), own(std::move(steps), batch)};
}

std::vector<std::string> kernel_names(const std::string& tier) {
  const auto names = bitserial::method_names(parse_tier(tier));
  return {names.begin(), names.end()};
}

}  // namespace

void bind_groups(nb::module_& m) {
  nb::class_<GroupMatrix>(
      m, "GroupMatrix",
      "Weights of 1 to 8 bits from their planes (bit, row, column / 64), with a "
      "float16 scale, as its 16 bits, for each group of columns of a row.")
      .def(nb::new_(&make_groups), nb::arg("planes").noconvert(), nb::arg("columns"),
           nb::arg("scale").noconvert(), nb::arg("group"), nb::kw_only(),
           nb::arg("tier") = nb::none())
      .def_prop_ro("rows", &GroupMatrix::rows)
      .def_prop_ro("columns", &GroupMatrix::columns)
      .def_prop_ro("group", &GroupMatrix::group)
      .def_prop_ro("bits", &GroupMatrix::bits)
      .def_prop_ro("tier",
                   [](const GroupMatrix& self) { return std::string(tier_name(self.tier())); })
      .def_prop_ro("packed_bytes", &GroupMatrix::packed_bytes, "Bytes of weights and scales.")
      .def("apply", &apply_groups, nb::arg("x").noconvert(), nb::arg("activation_bits"),
           nb::arg("bias").noconvert().none(), nb::arg("pool"),
           nb::arg("out").noconvert() = nb::none(),
           "Quantize float vectors, one per row, and return their scaled products.");
}

void bind_bitserial(nb::module_& m) {
  bind_groups(m);
  nb::class_<BitMatrix>(m, "BitMatrix",
                        "Weights of 1 to 8 bits from their planes (bit, row, column / 64), in the "
                        "layout of one CPU tier.")
      .def(nb::new_(&make_matrix), nb::arg("planes").noconvert(), nb::arg("columns"), nb::kw_only(),
           nb::arg("tier") = nb::none(), nb::arg("kernel") = nb::none())
      .def_prop_ro("rows", &BitMatrix::rows)
      .def_prop_ro("columns", &BitMatrix::columns)
      .def_prop_ro("bits", &BitMatrix::bits)
      .def_prop_ro("tier",
                   [](const BitMatrix& self) { return std::string(tier_name(self.tier())); })
      .def_prop_ro("packed_bytes", &BitMatrix::packed_bytes, "Bytes that a product reads.")
      .def("kernel", &kernel_name, nb::arg("activation_bits"), nb::arg("batch"),
           "Return the names of the kernels of such a product, joined by +.")
      .def("multiply", &multiply, nb::arg("x").noconvert(), nb::arg("activation_bits"),
           nb::arg("pool"), nb::arg("out").noconvert() = nb::none(),
           "Return the exact products with integer vectors, one per row.")
      .def("apply", &apply, nb::arg("x").noconvert(), nb::arg("activation_bits"),
           nb::arg("scale").noconvert(), nb::arg("bias").noconvert().none(), nb::arg("pool"),
           nb::arg("out").noconvert() = nb::none(),
           "Quantize float vectors, one per row, and return their scaled products.");
  m.def("quantize_activations", &quantize_activations, nb::arg("x").noconvert(),
        nb::arg("activation_bits"), nb::arg("tier") = nb::none(),
        "Return the integers of each float vector, and its step.");
  m.def("bitserial_kernels", &kernel_names, nb::arg("tier"),
        "Return the names of a tier's kernels.");
}

}  // namespace nescio::bindings
