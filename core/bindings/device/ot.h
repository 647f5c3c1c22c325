#pragma once

// The bindings of oblivious transfer on a device, the same for every kind of device.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "bindings/bindings.h"
#include "ot/gpu/device_gpu.h"

namespace nescio::bindings {

using HostBlocks = InArray<std::uint64_t, nb::shape<-1, 2>>;
using HostBlock128 = InArray<std::uint64_t, nb::shape<2>>;
using OutBlocks = nb::ndarray<nb::numpy, std::uint64_t, nb::c_contig>;

inline std::span<const Block> blocks_of(const HostBlocks& array) {
  return {reinterpret_cast<const Block*>(array.data()), array.shape(0)};
}
inline Block block_of(const HostBlock128& array) { return {array.data()[0], array.data()[1]}; }

/// Returns a NumPy array that owns `blocks`, of shape (n, 2), or (2,) for a single block.
inline OutBlocks to_array(Buffer<Block>&& blocks, bool single = false) {
  auto owned = std::make_unique<Buffer<Block>>(std::move(blocks));
  void* data = owned->data();
  const std::size_t count = owned->size();
  nb::capsule owner(owned.release(),
                    [](void* p) noexcept { delete static_cast<Buffer<Block>*>(p); });
  if (single) return OutBlocks(data, {2}, owner);
  return OutBlocks(data, {count, 2}, owner);
}

/// Returns the 16 bytes of a public seed.
inline ot::Seed seed_of(const nb::bytes& bytes) {
  if (bytes.size() != 16) {
    throw Error(ErrorKind::argument,
                "a seed: found " + std::to_string(bytes.size()) + " bytes, expected 16");
  }
  return ot::Seed(reinterpret_cast<const std::uint8_t*>(bytes.data()), 16);
}

/// Returns the keys of trees, or of transfers, from a base of 16 bytes.
inline ot::TreeBase keys_of(const nb::bytes& base, std::uint64_t first_tree) {
  const ot::Seed bytes = seed_of(base);
  Block block;
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::uint8_t*>(&block));
  return {block, first_tree};
}

template <class Ways>
auto way_of(const Ways& ways, const std::string& name) {
  const auto found = std::find(ways.begin(), ways.end(), name);
  if (found == ways.end()) {
    throw Error(ErrorKind::argument, "way: found '" + name + "', expected '" +
                                         std::string(ways[0]) + "', '" + std::string(ways[1]) +
                                         "' or '" + std::string(ways[2]) + "'");
  }
  return static_cast<std::size_t>(found - ways.begin());
}

template <class Blocks>
OutBlocks to_host(const Blocks& blocks) {
  Buffer<Block> out(blocks.size());
  {
    const nb::gil_scoped_release release;
    blocks.download(out.data());
  }
  return to_array(std::move(out));
}

template <gpu::ComputeDevice Device>
std::pair<int, int> dlpack_device(const ot::DeviceBlocks<Device>& blocks) {
  if (!Device::kReadsCuda) return {nb::device::cpu::value, 0};
  return {nb::device::cuda::value, static_cast<int>(blocks.device())};
}

/// Exports the blocks by the DLPack protocol of the array API standard: shared, or as a copy on the host
/// if the caller requests one. All work on the blocks is done, so the `stream` argument is ignored.
template <gpu::ComputeDevice Device>
nb::object dlpack(nb::handle_t<ot::DeviceBlocks<Device>> self, nb::kwargs arguments) {
  using Blocks = ot::DeviceBlocks<Device>;
  const auto& blocks = nb::cast<const Blocks&>(self);
  const auto own = dlpack_device(blocks);
  nb::dict others;
  auto wanted = own;
  bool copy = false;
  for (auto [key, value] : arguments) {
    const auto name = nb::cast<std::string>(key);
    if (name == "max_version") others["max_version"] = value;
    if (name == "copy" && !value.is_none()) copy = nb::cast<bool>(value);
    if (name == "dl_device" && !value.is_none()) wanted = nb::cast<std::pair<int, int>>(value);
  }
  if (copy || wanted != own) {
    if (wanted.first != nb::device::cpu::value) {
      throw nb::buffer_error("blocks can be copied only to the host");
    }
    return nb::cast(to_host(blocks)).attr("__dlpack__")(**others);
  }
  blocks.share();
  using Shared = nb::ndarray<nb::array_api, std::uint64_t, nb::c_contig>;
  const Shared shared(blocks.data(), {blocks.size(), 2}, self, {}, nb::dtype<std::uint64_t>(),
                      own.first, own.second);
  return nb::cast(shared).attr("__dlpack__")(**others);
}

template <class Blocks>
Blocks sliced(const Blocks& blocks, const nb::slice& slice) {
  const auto [start, stop, step, count] = slice.compute(blocks.size());
  static_cast<void>(stop);
  if (step != 1) throw Error(ErrorKind::argument, "slices of device blocks must have step 1");
  return blocks.part(static_cast<std::size_t>(start), count);
}

template <gpu::ComputeDevice Device>
void bind_device_blocks(nb::module_& m) {
  using Blocks = ot::DeviceBlocks<Device>;
  nb::class_<Blocks>(m, "DeviceBlocks", "Blocks in a device's memory; slices share it.")
      .def("__len__", &Blocks::size)
      .def("__getitem__", &sliced<Blocks>, nb::arg("slice"))
      .def_prop_ro("shape",
                   [](const Blocks& blocks) { return std::pair(blocks.size(), std::size_t{2}); })
      .def_prop_ro("device", &Blocks::device, "The device's number.")
      .def("to_host", &to_host<Blocks>, "Return a copy as a NumPy array of shape (n, 2).")
      .def("__dlpack__", &dlpack<Device>)
      .def("__dlpack_device__", &dlpack_device<Device>);
}

template <gpu::ComputeDevice Device>
void bind_trees(nb::class_<ot::OtDevice<Device>>& device) {
  using OtDevice = ot::OtDevice<Device>;
  device
      .def(
          "grow_trees",
          [](OtDevice& self, const HostBlocks& seeds, unsigned depth, const HostBlock128& delta,
             const nb::bytes& key, std::uint64_t first_tree, const std::string& way) {
            const ot::TreeBase keys = keys_of(key, first_tree);
            const auto tree_way = static_cast<ot::TreeWay>(way_of(ot::kTreeWays, way));
            Buffer<Block> sums(checked_product(seeds.shape(0), depth));
            auto leaves = [&] {
              const nb::gil_scoped_release release;
              return self.grow_trees(blocks_of(seeds), depth, block_of(delta), keys, sums.data(),
                                     tree_way);
            }();
            return std::pair(std::move(leaves), to_array(std::move(sums)));
          },
          nb::arg("seeds"), nb::arg("depth"), nb::arg("delta"), nb::arg("key"),
          nb::arg("first_tree") = 0, nb::arg("way") = "fused",
          "Return the leaves of correlated trees, and the XOR of each level's left nodes.")
      .def(
          "puncture_trees",
          [](OtDevice& self, const HostBlocks& sides, const Bytes& choices, unsigned depth,
             const nb::bytes& key, std::uint64_t first_tree) {
            const ot::TreeBase keys = keys_of(key, first_tree);
            const nb::gil_scoped_release release;
            return self.puncture_trees(blocks_of(sides), span_of(choices), depth, keys);
          },
          nb::arg("sides"), nb::arg("choices"), nb::arg("depth"), nb::arg("key"),
          nb::arg("first_tree") = 0, "Return the leaves of punctured trees.");
}

template <gpu::ComputeDevice Device>
void bind_codes(nb::class_<ot::OtDevice<Device>>& device) {
  using OtDevice = ot::OtDevice<Device>;
  using Blocks = typename OtDevice::Blocks;
  device
      .def(
          "encode_primal",
          [](OtDevice& self, const Blocks& noise, const Blocks& seeds, const nb::bytes& code_seed,
             std::uint64_t first_row, const std::string& way) {
            const ot::Seed seed = seed_of(code_seed);
            const auto primal_way = static_cast<ot::PrimalWay>(way_of(ot::kPrimalWays, way));
            const nb::gil_scoped_release release;
            self.encode_primal(noise, seeds, seed, first_row, primal_way);
          },
          nb::arg("noise"), nb::arg("seeds"), nb::arg("code_seed"), nb::arg("first_row") = 0,
          nb::arg("way") = "fused", "XOR rows of the code times `seeds` into `noise`.")
      .def(
          "encode_ec",
          [](OtDevice& self, const Blocks& noise, const nb::bytes& code_seed,
             std::uint64_t segment) {
            const ot::Seed seed = seed_of(code_seed);
            const nb::gil_scoped_release release;
            self.encode_ec(noise, seed, {segment});
          },
          nb::arg("noise"), nb::arg("code_seed"), nb::arg("segment") = ot::EcTuning().segment,
          "Compress 2n blocks to the first n; overwrites the others.");
}

template <gpu::ComputeDevice Device>
void bind_sums(nb::class_<ot::OtDevice<Device>>& device) {
  using OtDevice = ot::OtDevice<Device>;
  using Blocks = typename OtDevice::Blocks;
  device
      .def(
          "hash_blocks",
          [](OtDevice& self, const Blocks& blocks, std::uint64_t first, std::uint64_t tag,
             const nb::bytes& key, const std::optional<HostBlock128>& delta) {
            const Block base = keys_of(key, 0).base;
            const Block own = delta ? block_of(*delta) : Block{0, 0};
            const nb::gil_scoped_release release;
            return self.hash(blocks, first, tag, base, own);
          },
          nb::arg("blocks"), nb::arg("first_index"), nb::arg("tag"), nb::arg("key"),
          nb::arg("delta") = nb::none(),
          "Return h(x, i), or h(x ^ delta, i), for transfers beginning with `first_index`.")
      .def(
          "chi_sum",
          [](OtDevice& self, const Blocks& leaves, const nb::bytes& chi_seed, std::uint64_t first) {
            const ot::Seed seed = seed_of(chi_seed);
            Buffer<Block> sum(1);
            {
              const nb::gil_scoped_release release;
              sum[0] = self.chi_sum(leaves, seed, first);
            }
            return to_array(std::move(sum), true);
          },
          nb::arg("leaves"), nb::arg("chi_seed"), nb::arg("first") = 0,
          "Return the sum of chi[first + i] * leaves[i].")
      .def(
          "chi_at",
          [](OtDevice& self, const Numbers& positions, const nb::bytes& chi_seed) {
            const ot::Seed seed = seed_of(chi_seed);
            Buffer<Block> out(positions.size());
            {
              const nb::gil_scoped_release release;
              self.chi_at(span_of(positions), seed, out.data());
            }
            return to_array(std::move(out));
          },
          nb::arg("positions"), nb::arg("chi_seed"), "Return chi at some positions.")
      .def(
          "low_bits",
          [](OtDevice& self, const Blocks& blocks) {
            Buffer<std::uint8_t> out(blocks.size());
            {
              const nb::gil_scoped_release release;
              self.low_bits(blocks, out.data());
            }
            return to_array(std::move(out), {blocks.size()});
          },
          nb::arg("blocks"), "Return the lowest bit of each block, as a byte.")
      .def(
          "transpose_bits",
          [](OtDevice& self, const ByteRows& rows) {
            if (rows.shape(0) != 128) {
              throw Error(
                  ErrorKind::argument,
                  "rows of bits: found " + std::to_string(rows.shape(0)) + ", expected 128");
            }
            const nb::gil_scoped_release release;
            return self.transpose_bits(rows.data(), rows.shape(1));
          },
          nb::arg("rows"), "Transpose 128 rows of bits: bit i of row j becomes bit j of block i.");
}

/// Returns the names of a step's variants as a tuple.
template <class Ways>
nb::tuple names_of(const Ways& ways) {
  nb::list names;
  for (std::string_view name : ways) names.append(nb::str(name.data(), name.size()));
  return nb::tuple(names);
}

template <gpu::ComputeDevice Device>
void bind_ot_device(nb::module_& m) {
  using OtDevice = ot::OtDevice<Device>;
  using Blocks = typename OtDevice::Blocks;
  m.attr("TREE_WAYS") = names_of(ot::kTreeWays);
  m.attr("PRIMAL_WAYS") = names_of(ot::kPrimalWays);
  bind_device_blocks<Device>(m);
  nb::class_<OtDevice> device(m, "OtDevice", "Oblivious transfer on a device.");
  device.def(nb::init<unsigned>(), nb::arg("device"), nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("number", &OtDevice::number, "The device's number.")
      .def("empty", &OtDevice::empty, nb::arg("count"), nb::call_guard<nb::gil_scoped_release>(),
           "Return blocks of zeros.")
      .def(
          "upload",
          [](OtDevice& self, const HostBlocks& blocks) {
            const nb::gil_scoped_release release;
            return self.upload(blocks_of(blocks));
          },
          nb::arg("blocks"), "Copy blocks from the host.")
      .def(
          "join",
          [](OtDevice& self, const std::vector<Blocks>& parts) {
            const nb::gil_scoped_release release;
            return self.join(parts);
          },
          nb::arg("parts"), "Concatenate blocks of this and other devices.");
  bind_trees<Device>(device);
  bind_codes<Device>(device);
  bind_sums<Device>(device);
}

}  // namespace nescio::bindings
