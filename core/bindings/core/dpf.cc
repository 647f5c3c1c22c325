#include <cstring>

#include "base/error.h"
#include "base/thread_pool.h"
#include "bindings/bindings.h"
#include "dpf/evaluate.h"
#include "dpf/generate.h"
#include "dpf/shares.h"

namespace nescio::bindings {
namespace {

dpf::Shape make_shape(std::uint64_t domain, const std::string& output,
                      const std::string& generator) {
  const dpf::Shape shape{domain, dpf::parse_output(output), prg::parse_generator(generator)};
  shape.check();
  return shape;
}

std::vector<Block> to_blocks(const NumberPairs& pairs) {
  std::vector<Block> blocks(pairs.shape(0));
  std::memcpy(blocks.data(), pairs.data(), blocks.size() * sizeof(Block));
  return blocks;
}

/// Returns two arrays of keys, one key per row. With `insecure_roots`, a pair of seeds per key, nothing
/// is secret.
std::pair<OutBytes, OutBytes> generate(const Numbers& alphas, const NumberPairs& payloads,
                                       std::uint64_t domain, const std::string& output,
                                       const std::string& generator,
                                       const std::optional<NumberPairs>& insecure_roots,
                                       const std::optional<std::string>& tier) {
  const dpf::Shape shape = make_shape(domain, output, generator);
  const std::size_t n = alphas.size(), bytes = shape.key_bytes();
  if (payloads.shape(0) != n || (insecure_roots && insecure_roots->shape(0) != 2 * n)) {
    throw Error(ErrorKind::argument, "each point requires one payload and two roots");
  }
  const std::vector<Block> beta = to_blocks(payloads);
  Buffer<std::uint8_t> keys0(checked_product(n, bytes)), keys1(n * bytes);
  if (insecure_roots) {
    const std::vector<Block> roots = to_blocks(*insecure_roots);
    dpf::insecure_generate(shape, span_of(alphas), beta, roots, keys0.data(), keys1.data(),
                           tier_of(tier));
  } else {
    const nb::gil_scoped_release release;
    dpf::generate(shape, span_of(alphas), beta, keys0.data(), keys1.data(), tier_of(tier));
  }
  return {to_array(std::move(keys0), {n, bytes}), to_array(std::move(keys1), {n, bytes})};
}

OutBytes evaluate_range(const dpf::Keys& keys, std::uint64_t start, std::uint64_t stop,
                        ThreadPool& pool, const std::optional<std::string>& tier) {
  if (keys.size() > 0) dpf::check_range(keys.shape(), start, stop);
  const std::size_t stride =
      keys.size() == 0 ? 0 : dpf::share_bytes(keys.shape().output, stop - start);
  Buffer<std::uint8_t> out(checked_product(keys.size(), stride));
  {
    const nb::gil_scoped_release release;
    dpf::evaluate_range(keys, start, stop, out.data(), pool, tier_of(tier));
  }
  return to_array(std::move(out), {keys.size(), stride});
}

OutBytes evaluate_points(const dpf::Keys& keys, const InArray<std::uint64_t, nb::ndim<2>>& points,
                         ThreadPool& pool, const std::optional<std::string>& tier) {
  if (points.shape(0) != keys.size()) {
    throw Error(ErrorKind::argument, "each key requires one row of points");
  }
  const std::size_t element = (dpf::element_bits(keys.shape().output) + 7) / 8;
  Buffer<std::uint8_t> out(checked_product(points.size(), element));
  {
    const nb::gil_scoped_release release;
    dpf::evaluate_points(keys, {points.data(), points.size()}, out.data(), pool, tier_of(tier));
  }
  return to_array(std::move(out), {keys.size(), points.shape(1) * element});
}

dpf::Keys join(const std::vector<const dpf::Keys*>& parts) { return dpf::Keys::join(parts); }

OutBytes combine(const std::string& output_name, const Bytes& a, const Bytes& b) {
  const dpf::Output output = dpf::parse_output(output_name);
  const std::size_t element = (dpf::element_bits(output) + 7) / 8;
  if (a.size() != b.size() || a.size() % element != 0) {
    throw Error(ErrorKind::argument,
                "shares to combine must have the same length, in whole elements");
  }
  Buffer<std::uint8_t> sums(a.size());
  dpf::combine(output, a.data(), b.data(), a.size(), sums.data());
  return to_array(std::move(sums), {a.size()});
}

}  // namespace

void bind_dpf(nb::module_& m) {
  nb::class_<dpf::Keys>(m, "Keys", "Validated keys of one shape, from the rows of a byte array.")
      .def(
          "__init__",
          [](dpf::Keys* keys, const ByteRows& rows) {
            new (keys) dpf::Keys(rows.data(), rows.shape(0), rows.shape(1));
          },
          nb::arg("rows"))
      .def_static("join", &join, nb::arg("parts"), "Concatenate keys.")
      .def("__len__", &dpf::Keys::size)
      .def(
          "parties",
          [](const dpf::Keys& keys) {
            Buffer<std::uint8_t> parties(keys.size());
            for (std::size_t i = 0; i < keys.size(); ++i) {
              parties[i] = static_cast<std::uint8_t>(keys.party(i));
            }
            return to_array(std::move(parties), {keys.size()});
          },
          "Return the party of each key.")
      .def_prop_ro("domain", [](const dpf::Keys& keys) { return keys.shape().domain; })
      .def_prop_ro("output",
                   [](const dpf::Keys& keys) { return dpf::output_name(keys.shape().output); })
      .def_prop_ro("generator", [](const dpf::Keys& keys) {
        return prg::generator(keys.shape().generator, Tier::portable).name;
      });
  m.def("generate", &generate, nb::arg("alphas"), nb::arg("payloads"), nb::arg("domain"),
        nb::arg("output"), nb::arg("generator"), nb::arg("insecure_roots") = nb::none(),
        nb::arg("tier") = nb::none(),
        "Return the keys of both parties, one per row of two arrays.");
  m.def("evaluate_range", &evaluate_range, nb::arg("keys"), nb::arg("start"), nb::arg("stop"),
        nb::arg("pool"), nb::arg("tier") = nb::none(),
        "Return the shares at start..stop-1 as bytes, one row per key; bits are packed.");
  m.def("evaluate_points", &evaluate_points, nb::arg("keys"), nb::arg("points"), nb::arg("pool"),
        nb::arg("tier") = nb::none(),
        "Return the shares at each key's points as bytes, one byte per bit.");
  m.def("combine", &combine, nb::arg("output"), nb::arg("a"), nb::arg("b"),
        "Return the sums of shares in the output group.");
  m.def(
      "key_bytes",
      [](std::uint64_t domain, const std::string& output, const std::string& generator) {
        return make_shape(domain, output, generator).key_bytes();
      },
      nb::arg("domain"), nb::arg("output"), nb::arg("generator"), "Return the length of each key.");
}

}  // namespace nescio::bindings
