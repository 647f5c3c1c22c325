#include <algorithm>

#include "base/error.h"
#include "bindings/bindings.h"
#include "ot/choices.h"
#include "ot/limits.h"

namespace nescio::bindings {
namespace {

constexpr std::uint64_t kMostBlocks = std::uint64_t{1} << 32;

void low_bits(const NumberPairs& blocks,
              const nb::ndarray<std::uint8_t, nb::c_contig, nb::device::cpu, nb::ndim<1>>& out) {
  if (out.shape(0) != blocks.shape(0)) {
    throw Error(ErrorKind::argument, "each block has one lowest bit: expected room for " +
                                         std::to_string(blocks.shape(0)) + ", found " +
                                         std::to_string(out.shape(0)));
  }
  const nb::gil_scoped_release release;
  ot::low_bits(reinterpret_cast<const Block*>(blocks.data()), blocks.shape(0), out.data());
}

double seconds_per_read(std::uint64_t blocks) {
  if (blocks == 0 || blocks > kMostBlocks) {
    throw Error(ErrorKind::argument, "blocks: expected 1 to 2^32");
  }
  const nb::gil_scoped_release release;
  return ot::seconds_per_read(blocks);
}

}  // namespace

void bind_ot_limits(nb::module_& m) {
  m.def("low_bits", &low_bits, nb::arg("blocks"), nb::arg("out").noconvert(),
        "The lowest bit of each block, a byte each.");
  m.def("seconds_per_read", &seconds_per_read, nb::arg("blocks"),
        "Time of one read at random among so many blocks, measured.");
}

}  // namespace nescio::bindings
