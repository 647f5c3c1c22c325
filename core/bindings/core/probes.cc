#include "base/error.h"
#include "bindings/bindings.h"
#include "probes/bitserial.h"
#include "probes/issue.h"
#include "probes/ot.h"
#include "probes/pir.h"
#include "probes/rlwe.h"

namespace nescio::bindings {
namespace {

constexpr std::uint64_t kMaxBlocks = std::uint64_t{1} << 32;

double seconds_per_read(std::uint64_t blocks) {
  if (blocks == 0 || blocks > kMaxBlocks) {
    throw Error(ErrorKind::argument,
                "blocks: found " + std::to_string(blocks) + ", expected 1 to 2^32");
  }
  const nb::gil_scoped_release release;
  return ot::seconds_per_read(blocks);
}

}  // namespace

void bind_probes(nb::module_& m) {
  m.def(
      "seconds_per_byte",
      [](const std::string& output, const std::optional<std::string>& tier) {
        return pir::seconds_per_byte(dpf::parse_output(output), tier_of(tier));
      },
      nb::arg("output"), nb::arg("tier") = nb::none(),
      "Measure the seconds of the product per key and byte of table, in the cache.");
  m.def(
      "issue",
      [](const std::string& instruction, const std::optional<std::string>& tier) {
        const probes::Instruction found = probes::parse_instruction(instruction);
        const Tier own = tier_of(tier);
        const nb::gil_scoped_release release;
        const probes::Issue issue = probes::measure_issue(found, own);
        return std::pair(issue.bytes, issue.seconds);
      },
      nb::arg("instruction"), nb::arg("tier") = nb::none(),
      "Measure an instruction of a tier in a loop of nothing else: the bytes of its registers (0 "
      "if "
      "the tier does not have it) and the seconds of one.");
  m.def(
      "seconds_per_weight",
      [](unsigned weight_bits, unsigned activation_bits, std::size_t rows, std::size_t batch,
         const std::optional<std::string>& tier) {
        return bitserial::seconds_per_weight(weight_bits, activation_bits, rows, batch,
                                             tier_of(tier), "");
      },
      nb::arg("weight_bits"), nb::arg("activation_bits"), nb::arg("rows"), nb::arg("batch") = 1,
      nb::arg("tier") = nb::none(),
      "Measure the seconds of a product's inner loops per weight, for all vectors, in the cache.");
  m.def("seconds_per_read", &seconds_per_read, nb::arg("blocks"),
        "Measure the seconds of one random read among `blocks` blocks.");
  m.def(
      "seconds_per_row",
      [](const std::optional<std::string>& tier) {
        const Tier own = tier_of(tier);
        const nb::gil_scoped_release release;
        const rlwe::RowSeconds seconds = rlwe::seconds_per_row(own);
        return std::tuple(seconds.forward, seconds.inverse, seconds.product, seconds.block);
      },
      nb::arg("tier") = nb::none(),
      "Measure the inner loops of a ring-LWE row in the cache: the seconds of a transform, an "
      "inverse transform, a term of a sum of products, and 64 bytes of randomness.");
}

}  // namespace nescio::bindings
