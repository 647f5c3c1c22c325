#include <span>
#include <string>

#include "base/block.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "bindings/bindings.h"
#include "ot/codes/expand_convolute.h"
#include "ot/codes/quasi_cyclic.h"

namespace nescio::bindings {
namespace {

using BlocksInOut = nb::ndarray<std::uint64_t, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;

/// Returns the array's memory as blocks, which must be aligned to 16 bytes.
template <class T>
T* blocks_of(const void* data) {
  if (reinterpret_cast<std::uintptr_t>(data) % alignof(Block) != 0) {
    throw Error(ErrorKind::argument, "blocks: found memory that is not aligned to 16 bytes");
  }
  return static_cast<T*>(const_cast<void*>(data));
}

const std::uint8_t* seed_of(const nb::bytes& seed) {
  if (seed.size() != sizeof(Block)) {
    throw Error(ErrorKind::argument,
                "code_seed: found " + std::to_string(seed.size()) + " bytes, expected 16");
  }
  return static_cast<const std::uint8_t*>(seed.data());
}

void encode_ec(const BlocksInOut& noise, const nb::bytes& code_seed, ThreadPool& pool,
               const std::optional<std::string>& tier, const std::optional<BlocksInOut>& out) {
  const std::span<Block> blocks(blocks_of<Block>(noise.data()), noise.shape(0));
  const std::uint8_t* seed = seed_of(code_seed);
  const Tier own = tier_of(tier);
  std::span<Block> into;
  if (out) into = {blocks_of<Block>(out->data()), out->shape(0)};
  const nb::gil_scoped_release release;
  ot::encode_expand_convolute(blocks, seed, pool, own, into);
}

using OutBlocks = nb::ndarray<nb::numpy, std::uint64_t, nb::shape<-1, 2>, nb::c_contig>;

OutBlocks encode_qc(const NumberPairs& noise, const nb::bytes& code_seed, std::size_t count,
                    ThreadPool& pool, const std::optional<std::string>& tier,
                    ot::QuasiCyclicScratch* scratch) {
  const std::span<const Block> blocks(blocks_of<const Block>(noise.data()), noise.shape(0));
  const std::uint8_t* seed = seed_of(code_seed);
  const Tier own = tier_of(tier);
  auto out = std::make_unique<Buffer<Block>>();
  {
    const nb::gil_scoped_release release;
    ot::QuasiCyclicScratch own_scratch;
    *out = ot::encode_quasi_cyclic(blocks, seed, count, pool, own,
                                   scratch == nullptr ? own_scratch : *scratch);
  }
  Block* data = out->data();
  nb::capsule owner(out.release(), [](void* p) noexcept { delete static_cast<Buffer<Block>*>(p); });
  return OutBlocks(data, {count, 2}, owner);
}

}  // namespace

void bind_ot_codes(nb::module_& m) {
  m.def("encode_ec", &encode_ec, nb::arg("noise").noconvert(), nb::arg("code_seed"),
        nb::arg("pool"), nb::arg("tier") = nb::none(), nb::arg("out").noconvert() = nb::none(),
        "Compress 2n blocks to the first n by an expand-convolute code, or to the first ones in "
        "`out`.");
  nb::class_<ot::QuasiCyclicScratch>(m, "QuasiCyclicScratch",
                                     "Scratch memory for encode_qc, reused between calls.")
      .def(nb::init<>());
  m.def("encode_qc", &encode_qc, nb::arg("noise"), nb::arg("code_seed"), nb::arg("count"),
        nb::arg("pool"), nb::arg("tier") = nb::none(), nb::arg("scratch").none() = nb::none(),
        "Return the first outputs of a quasi-cyclic code on 2p blocks.");
}

}  // namespace nescio::bindings
