#pragma once

// The bindings of a device's tables, the same for every kind of device: each is a module of its own.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "bindings/bindings.h"
#include "bindings/errors.h"
#include "pir/answer.h"
#include "pir/gpu/answer_gpu.h"

namespace nescio::bindings {

/// Rows in the host's memory or in a device's.
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

template <class Table>
void check_width(const Table& table, std::size_t bytes) {
  if (bytes == table.row_bytes()) return;
  throw Error("rows of a table", std::to_string(bytes) + " bytes",
              std::to_string(table.row_bytes()) + " bytes");
}

template <class Device>
void store(pir::GpuTable<Device>& table, std::uint64_t first, const AnyRows& rows) {
  check_width(table, rows.shape(1));
  std::optional<unsigned> device;
  if (rows.device_type() != nb::device::cpu::value) {
    if (!Device::kReadsCuda || rows.device_type() != nb::device::cuda::value) {
      throw Error(
          ErrorKind::argument,
          "the rows are on a device that this one cannot read: copy them to the host first");
    }
    device = static_cast<unsigned>(rows.device_id());
  }
  const nb::gil_scoped_release release;
  table.store(first, rows.data(), rows.shape(0), device);
}

template <class Device>
void replace(pir::GpuTable<Device>& table, const Numbers& indices, const ByteRows& rows) {
  check_width(table, rows.shape(1));
  if (rows.shape(0) != indices.size()) {
    throw Error(ErrorKind::argument, "each index needs a row");
  }
  const nb::gil_scoped_release release;
  table.replace(span_of(indices), rows.data());
}

template <class Device>
std::pair<OutBytes, nb::dict> answer(pir::GpuTable<Device>& table, const dpf::Keys& keys,
                                     const std::string& strategy, unsigned run) {
  const pir::GpuOptions options = {pir::parse_strategy(strategy), run};
  const std::size_t bytes = pir::answer_bytes(table.output(), table.row_bytes());
  Buffer<std::uint8_t> out(checked_product(keys.size(), bytes));
  pir::GpuWork work;
  {
    const nb::gil_scoped_release release;
    work = table.answer(keys, options, out.data());
  }
  return {to_array(std::move(out), {keys.size(), bytes}), to_dict(work)};
}

template <class Device>
void bind_gpu(nb::module_& m) {
  using Table = pir::GpuTable<Device>;
  nb::set_leak_warnings(false);
  translate_errors();
  m.def("devices", &Device::count, "Devices that can be used.");
  m.def(
      "device_info", [](unsigned device) { return to_dict(Device::info(device)); },
      nb::arg("device"), "What a device is.");
  nb::list strategies;
  for (std::string_view name : pir::kStrategies)
    strategies.append(nb::str(name.data(), name.size()));
  m.attr("STRATEGIES") = nb::tuple(strategies);
  nb::class_<Table>(m, "Table", "Rows of a table in a device's memory; not initialised.")
      .def(
          "__init__",
          [](Table* self, unsigned device, std::uint64_t first_row, std::uint64_t rows,
             std::uint64_t domain, std::size_t row_bytes, const std::string& output) {
            new (self)
                Table(device, {first_row, rows, domain}, row_bytes, dpf::parse_output(output));
          },
          nb::arg("device"), nb::arg("first_row"), nb::arg("rows"), nb::arg("domain"),
          nb::arg("row_bytes"), nb::arg("output"))
      .def("store", &store<Device>, nb::arg("first"), nb::arg("rows"),
           "Writes rows from row `first`, a multiple of 512, on; they may be on the device.")
      .def("replace", &replace<Device>, nb::arg("indices"), nb::arg("rows"),
           "Overwrites the rows at some indices, which are all different.")
      .def("answer", &answer<Device>, nb::arg("keys"), nb::arg("strategy") = "auto",
           nb::arg("run") = pir::GpuPlan::kRun,
           "This shard's part of the answers, a row each, and what they took.")
      .def("seconds_per_pass", &Table::seconds_per_pass, nb::call_guard<nb::gil_scoped_release>(),
           "Time to read the table once, measured.")
      .def("products_per_second", &Table::products_per_second,
           nb::call_guard<nb::gil_scoped_release>(), "Rate of the matrix instructions, measured.")
      .def(
          "calls_per_second",
          [](Table& table, const std::string& generator, bool leaves) {
            const prg::GeneratorId id = prg::parse_generator(generator);
            const nb::gil_scoped_release release;
            return table.calls_per_second(id, leaves);
          },
          nb::arg("generator"), nb::arg("leaves"), "Rate of a generator alone, measured.")
      .def_prop_ro("bytes", &Table::bytes, "Bytes of the table as it stands.");
}

}  // namespace nescio::bindings
