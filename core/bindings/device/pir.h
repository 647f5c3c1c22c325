#pragma once

// The bindings of tables on a device, the same for every kind of device. Each kind is a module.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "bindings/bindings.h"
#include "bindings/bins.h"
#include "bindings/errors.h"
#include "pir/answer.h"
#include "pir/gpu/answer_gpu.h"

namespace nescio::bindings {

/// Rows in host or device memory.
using AnyRows = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig>;

inline nb::dict to_dict(const gpu::DeviceInfo& info) {
  nb::dict facts;
  facts["name"] = info.name;
  facts["processors"] = info.processors;
  facts["capability"] = info.capability;
  facts["cache_bytes"] = info.cache_bytes;
  facts["memory_bytes"] = info.memory_bytes;
  return facts;
}

inline nb::dict to_dict(const pir::GpuWork& work) {
  nb::dict facts;
  facts["expansions"] = work.expansions;
  facts["leaves"] = work.leaves;
  facts["launches"] = work.launches;
  facts["peak_bytes"] = work.peak_bytes;
  return facts;
}

template <gpu::ComputeDevice Device>
void store(pir::GpuTable<Device>& table, std::uint64_t first, const AnyRows& rows) {
  check_width(rows.shape(1), table.extent().row_bytes());
  std::optional<unsigned> device;
  if (rows.device_type() != nb::device::cpu::value) {
    if (!Device::kReadsCuda || rows.device_type() != nb::device::cuda::value) {
      throw Error(ErrorKind::argument,
                  "rows: found an array on a device that this device cannot read; copy it to the "
                  "host first");
    }
    device = static_cast<unsigned>(rows.device_id());
  }
  const nb::gil_scoped_release release;
  table.store(first, rows.data(), rows.shape(0), device);
}

template <gpu::ComputeDevice Device>
void replace(pir::GpuTable<Device>& table, const Numbers& indices, const ByteRows& rows) {
  check_width(rows.shape(1), table.extent().row_bytes());
  if (rows.shape(0) != indices.size()) {
    throw Error(ErrorKind::argument, "each index requires one row");
  }
  const nb::gil_scoped_release release;
  table.replace(span_of(indices), rows.data());
}

template <gpu::ComputeDevice Device>
std::pair<OutBytes, nb::dict> answer(pir::GpuTable<Device>& table, const GroupKeys& keys,
                                     const std::string& strategy, unsigned run) {
  check_present(keys);
  const pir::GpuOptions options = {pir::parse_strategy(strategy), run};
  const pir::TableExtent& extent = table.extent();
  const std::size_t bytes = pir::answer_bytes(extent.output(), extent.row_bytes());
  const std::size_t answers =
      checked_product(pir::count_lookups(extent, keys), extent.bins().slots());
  Buffer<std::uint8_t> out(checked_product(answers, bytes));
  pir::GpuWork work;
  {
    const nb::gil_scoped_release release;
    work = table.answer(keys, options, out.data());
  }
  return {to_array(std::move(out), {answers, bytes}), to_dict(work)};
}

template <gpu::ComputeDevice Device>
void bind_pir_device(nb::module_& m) {
  using Table = pir::GpuTable<Device>;
  nb::set_leak_warnings(false);
  translate_errors();
  m.def("devices", &Device::count, nb::call_guard<nb::gil_scoped_release>(),
        "Return the number of usable devices.");
  m.def(
      "device_info", [](unsigned device) { return to_dict(Device::info(device)); },
      nb::arg("device"), "Return the properties of a device.");
  nb::list strategies;
  for (std::string_view name : pir::kStrategies)
    strategies.append(nb::str(name.data(), name.size()));
  m.attr("STRATEGIES") = nb::tuple(strategies);
  nb::class_<Table>(m, "Table", "Rows of a table in a device's memory; uninitialized.")
      .def(
          "__init__",
          [](Table* self, unsigned device, const Groups& bins, std::uint64_t first_row,
             std::uint64_t rows, std::size_t row_bytes, const std::string& output) {
            const pir::TableExtent extent = extent_of(bins, row_bytes, output);
            const nb::gil_scoped_release release;  // a first use of the device takes a second
            new (self) Table(device, extent, {first_row, rows});
          },
          nb::arg("device"), nb::arg("bins"), nb::arg("first_row"), nb::arg("rows"),
          nb::arg("row_bytes"), nb::arg("output"))
      .def("store", &store<Device>, nb::arg("first"), nb::arg("rows"),
           "Store rows, beginning with row `first`, a multiple of 512 in its bin; they may be on "
           "the "
           "device.")
      .def("replace", &replace<Device>, nb::arg("indices"), nb::arg("rows"),
           "Overwrite the rows at some distinct indices.")
      .def("answer", &answer<Device>, nb::arg("keys"), nb::arg("strategy") = "auto",
           nb::arg("run") = pir::GpuPlan::kRun,
           "Return this shard's part of the answers, one per row, and the work done. `keys` has "
           "those of "
           "each group of bins.")
      .def("seconds_per_pass", &Table::seconds_per_pass, nb::call_guard<nb::gil_scoped_release>(),
           "Measure the seconds to read the table once.")
      .def("products_per_second", &Table::products_per_second,
           nb::call_guard<nb::gil_scoped_release>(),
           "Measure the products per second of matrix instructions.")
      .def(
          "calls_per_second",
          [](Table& table, const std::string& generator, bool leaves) {
            const prg::GeneratorId id = prg::parse_generator(generator);
            const nb::gil_scoped_release release;
            return table.calls_per_second(id, leaves);
          },
          nb::arg("generator"), nb::arg("leaves"),
          "Measure the calls per second of a generator alone.")
      .def_prop_ro("bytes", &Table::bytes, "Bytes of the table in device memory.");
}

}  // namespace nescio::bindings
