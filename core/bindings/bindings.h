#pragma once

// Common parts of the bindings. Bindings convert arrays to spans and buffers to arrays, and release the
// interpreter lock. Checks of values are in the engine.

// clang-format off: nanobind uses stderr, which Python.h of the stable ABI does not declare.
#include <cstdio>
// clang-format on

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/cpu.h"
#include "base/error.h"

namespace nescio::bindings {

namespace nb = nanobind;

template <class T, class... Shape>
using InArray = nb::ndarray<const T, nb::c_contig, nb::device::cpu, Shape...>;
using Bytes = InArray<std::uint8_t, nb::ndim<1>>;
using ByteRows = InArray<std::uint8_t, nb::ndim<2>>;
using Numbers = InArray<std::uint64_t, nb::ndim<1>>;
using NumberPairs = InArray<std::uint64_t, nb::shape<-1, 2>>;

template <class T>
using OutArray = nb::ndarray<nb::numpy, T, nb::c_contig>;
using OutBytes = OutArray<std::uint8_t>;

template <class T, class... Shape>
std::span<const T> span_of(const InArray<T, Shape...>& array) {
  return {array.data(), array.size()};
}

/// Returns a NumPy array that owns `buffer`.
template <class T>
OutArray<T> to_array(Buffer<T>&& buffer, std::initializer_list<std::size_t> shape) {
  auto owned = std::make_unique<Buffer<T>>(std::move(buffer));
  T* data = owned->data();
  nb::capsule owner(owned.release(), [](void* p) noexcept { delete static_cast<Buffer<T>*>(p); });
  return OutArray<T>(data, shape, owner);
}

/// Throws if rows for a table do not have its row size.
inline void check_width(std::size_t bytes, std::size_t row_bytes) {
  if (bytes == row_bytes) return;
  throw Error(ErrorKind::argument, "rows of a table: found " + std::to_string(bytes) +
                                       " bytes, expected " + std::to_string(row_bytes) + " bytes");
}

/// Returns the tier with that name, or the active tier.
inline Tier tier_of(const std::optional<std::string>& name) {
  return name ? parse_tier(*name) : active_tier();
}

void bind_base(nb::module_& m);
void bind_prg(nb::module_& m);
void bind_hash(nb::module_& m);
void bind_batch(nb::module_& m);
void bind_dpf(nb::module_& m);
void bind_keyed(nb::module_& m);
void bind_lut(nb::module_& m);
void bind_pir(nb::module_& m);
void bind_ot(nb::module_& m);
void bind_ot_codes(nb::module_& m);
void bind_probes(nb::module_& m);
void bind_bitserial(nb::module_& m);
void bind_rlwe(nb::module_& m);

}  // namespace nescio::bindings
