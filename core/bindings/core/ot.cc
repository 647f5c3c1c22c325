#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/thread_pool.h"
#include "bindings/bindings.h"
#include "ot/check/check.h"
#include "ot/choices.h"
#include "ot/codes/primal.h"
#include "ot/hash/hash.h"
#include "ot/transpose.h"
#include "ot/trees/tree.h"

namespace nescio::bindings {
namespace {

using OutBlocks = nb::ndarray<nb::numpy, std::uint64_t, nb::c_contig, nb::shape<-1, 2>>;
using OutBlock = nb::ndarray<nb::numpy, std::uint64_t, nb::c_contig, nb::shape<2>>;
using OneBlock = InArray<std::uint64_t, nb::shape<2>>;
using BlocksInPlace = nb::ndarray<std::uint64_t, nb::c_contig, nb::device::cpu, nb::shape<-1, 2>>;
using Tiers = std::optional<std::string>;

bool is_aligned(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data) % alignof(Block) == 0;
}

/// An array's blocks: its own memory, or a copy if it is not aligned.
class InBlocks {
 public:
  explicit InBlocks(const NumberPairs& array) : size_(array.shape(0)) {
    data_ = reinterpret_cast<const Block*>(array.data());
    if (is_aligned(array.data())) return;
    copy_ = Buffer<Block>(size_);
    std::memcpy(copy_.data(), array.data(), size_ * sizeof(Block));
    data_ = copy_.data();
  }

  operator std::span<const Block>() const { return {data_, size_}; }
  std::size_t size() const { return size_; }
  const Block* data() const { return data_; }

 private:
  std::size_t size_;
  const Block* data_;
  Buffer<Block> copy_;
};

Block to_block(const OneBlock& array) { return {array.data()[0], array.data()[1]}; }

/// Returns the blocks of an output array.
std::span<Block> in_place(const BlocksInPlace& array, const char* what) {
  if (!is_aligned(array.data())) {
    throw Error(ErrorKind::argument,
                std::string(what) +
                    ": found an array that is not aligned to 16 bytes, expected "
                    "one that is, as NumPy allocates them");
  }
  return {reinterpret_cast<Block*>(array.data()), array.shape(0)};
}

OutBlocks to_array(Buffer<Block>&& buffer) {
  auto owned = std::make_unique<Buffer<Block>>(std::move(buffer));
  Block* data = owned->data();
  const std::size_t size = owned->size();
  nb::capsule owner(owned.release(),
                    [](void* p) noexcept { delete static_cast<Buffer<Block>*>(p); });
  return OutBlocks(reinterpret_cast<std::uint64_t*>(data), {size, 2}, owner);
}

OutBlock to_array(Block block) {
  auto owned = std::make_unique<Block>(block);
  Block* data = owned.get();
  nb::capsule owner(owned.release(), [](void* p) noexcept { delete static_cast<Block*>(p); });
  return OutBlock(reinterpret_cast<std::uint64_t*>(data), {2}, owner);
}

[[noreturn]] void refuse(const std::string& what, std::size_t found, const std::string& expected) {
  throw Error(ErrorKind::argument,
              what + ": found " + std::to_string(found) + ", expected " + expected);
}

const std::uint8_t* seed_of(const nb::bytes& seed, const char* what) {
  if (seed.size() != sizeof(Block)) refuse(std::string(what) + " in bytes", seed.size(), "16");
  return static_cast<const std::uint8_t*>(seed.data());
}

ot::TreeBase keys_of(const nb::bytes& key, std::uint64_t first_tree) {
  Block base;
  std::memcpy(&base, seed_of(key, "key"), sizeof(base));
  return {base, first_tree};
}

/// The output of `size` blocks: the caller's array, or a new one.
class Result {
 public:
  Result(std::size_t size, std::optional<BlocksInPlace>&& out) : out_(std::move(out)) {
    if (!out_) {
      own_ = Buffer<Block>(size);
    } else if (in_place(*out_, "out").size() != size) {
      refuse("blocks of out", out_->shape(0), std::to_string(size));
    }
  }

  Block* data() { return out_ ? in_place(*out_, "out").data() : own_.data(); }
  OutBlocks take() { return out_ ? OutBlocks(out_->handle()) : to_array(std::move(own_)); }

 private:
  std::optional<BlocksInPlace> out_;
  Buffer<Block> own_;
};

// ---- Trees --------------------------------------------------------------------------------------

std::size_t leaves_of(std::size_t trees, unsigned depth) {
  ot::check_depth(depth);
  return checked_product(trees, std::size_t{1} << depth);
}

std::pair<OutBlocks, OutBlocks> grow_trees(const NumberPairs& seeds, unsigned depth,
                                           const OneBlock& delta, const nb::bytes& key,
                                           ThreadPool& pool, const Tiers& tier,
                                           std::optional<BlocksInPlace> out,
                                           std::uint64_t first_tree) {
  const ot::TreeBase keys = keys_of(key, first_tree);
  const InBlocks in(seeds);
  Result leaves(leaves_of(in.size(), depth), std::move(out));
  Buffer<Block> sums(in.size() * depth);
  {
    const nb::gil_scoped_release release;
    ot::grow_trees(in, depth, to_block(delta), keys, leaves.data(), sums.data(), pool,
                   tier_of(tier));
  }
  return {leaves.take(), to_array(std::move(sums))};
}

OutBlocks puncture_trees(const NumberPairs& sides, const Bytes& choices, unsigned depth,
                         const nb::bytes& key, ThreadPool& pool, const Tiers& tier,
                         std::optional<BlocksInPlace> out, std::uint64_t first_tree) {
  const ot::TreeBase keys = keys_of(key, first_tree);
  ot::check_depth(depth);
  if (choices.size() % depth != 0) {
    refuse("choices", choices.size(), "a multiple of the depth, " + std::to_string(depth));
  }
  if (sides.shape(0) != choices.size()) {
    refuse("sides", sides.shape(0),
           "one for each of " + std::to_string(choices.size()) + " choices");
  }
  const InBlocks in(sides);
  Result leaves(leaves_of(choices.size() / depth, depth), std::move(out));
  {
    const nb::gil_scoped_release release;
    ot::puncture_trees(in, span_of(choices), depth, keys, leaves.data(), pool, tier_of(tier));
  }
  return leaves.take();
}

// ---- Codes, hash, check -------------------------------------------------------------------------

void encode_primal(const BlocksInPlace& noise, const NumberPairs& seeds, const nb::bytes& code_seed,
                   std::uint64_t first_row, ThreadPool& pool, const Tiers& tier) {
  const std::span<Block> rows = in_place(noise, "noise");
  const std::uint8_t* key = seed_of(code_seed, "code_seed");
  const InBlocks in(seeds);
  const nb::gil_scoped_release release;
  ot::encode_primal(rows, in, key, first_row, pool, tier_of(tier));
}

OutBlocks hash_blocks(const NumberPairs& blocks, std::uint64_t first_index, std::uint64_t tag,
                      const nb::bytes& key, ThreadPool& pool, const std::optional<OneBlock>& delta,
                      const Tiers& tier, std::optional<BlocksInPlace> out) {
  const Block base = keys_of(key, 0).base;
  const InBlocks in(blocks);
  Result hashes(in.size(), std::move(out));
  {
    const nb::gil_scoped_release release;
    ot::hash_blocks(in, first_index, tag, base, delta ? to_block(*delta) : Block{}, hashes.data(),
                    pool, tier_of(tier));
  }
  return hashes.take();
}

OutBlock chi_sum(const NumberPairs& leaves, const nb::bytes& chi_seed, ThreadPool& pool,
                 const Tiers& tier) {
  const InBlocks in(leaves);
  const std::uint8_t* seed = seed_of(chi_seed, "chi_seed");
  Block sum;
  {
    const nb::gil_scoped_release release;
    sum = ot::chi_sum(in, seed, pool, tier_of(tier));
  }
  return to_array(sum);
}

OutBlocks chi_at(const Numbers& positions, const nb::bytes& chi_seed, const Tiers& tier) {
  Buffer<Block> chi(positions.size());
  ot::chi_at(span_of(positions), seed_of(chi_seed, "chi_seed"), chi.data(), tier_of(tier));
  return to_array(std::move(chi));
}

OutBlock pack_bits(const NumberPairs& blocks) {
  if (blocks.shape(0) != 128) refuse("blocks", blocks.shape(0), "128");
  return to_array(ot::pack_bits(InBlocks(blocks).data()));
}

OutBlock multiply_blocks(const OneBlock& a, const OneBlock& b, const Tiers& tier) {
  return to_array(ot::multiply(to_block(a), to_block(b), tier_of(tier)));
}

void low_bits(const NumberPairs& blocks,
              const nb::ndarray<std::uint8_t, nb::c_contig, nb::device::cpu, nb::ndim<1>>& out) {
  if (out.shape(0) != blocks.shape(0)) {
    throw Error(ErrorKind::argument, "bytes of out: found " + std::to_string(out.shape(0)) +
                                         ", expected one per block, " +
                                         std::to_string(blocks.shape(0)));
  }
  const nb::gil_scoped_release release;
  ot::low_bits(reinterpret_cast<const Block*>(blocks.data()), blocks.shape(0), out.data());
}

OutBlocks transpose_bits(const ByteRows& rows) {
  if (rows.shape(0) != 128) refuse("rows of bits", rows.shape(0), "128");
  Buffer<Block> blocks(checked_product(8, rows.shape(1)));
  {
    const nb::gil_scoped_release release;
    ot::transpose_bits(rows.data(), rows.shape(1), blocks.data());
  }
  return to_array(std::move(blocks));
}

}  // namespace

void bind_ot(nb::module_& m) {
  m.def("grow_trees", &grow_trees, nb::arg("seeds"), nb::arg("depth"), nb::arg("delta"),
        nb::arg("key"), nb::arg("pool"), nb::arg("tier") = nb::none(),
        nb::arg("out").noconvert() = nb::none(), nb::arg("first_tree") = 0,
        "Return the leaves of correlated trees, and the sums of each level's left nodes, by tree.");
  m.def("puncture_trees", &puncture_trees, nb::arg("sides"), nb::arg("choices"), nb::arg("depth"),
        nb::arg("key"), nb::arg("pool"), nb::arg("tier") = nb::none(),
        nb::arg("out").noconvert() = nb::none(), nb::arg("first_tree") = 0,
        "Return the leaves of punctured trees; only the punctured leaf has its lowest bit set.");
  m.def("encode_primal", &encode_primal, nb::arg("noise").noconvert(), nb::arg("seeds"),
        nb::arg("code_seed"), nb::arg("first_row"), nb::arg("pool"), nb::arg("tier") = nb::none(),
        "XOR into each block of noise the ten seeds of its row of a public matrix.");
  m.def("hash_blocks", &hash_blocks, nb::arg("blocks"), nb::arg("first_index"), nb::arg("tag"),
        nb::arg("key"), nb::arg("pool"), nb::arg("delta") = nb::none(),
        nb::arg("tier") = nb::none(), nb::arg("out").noconvert() = nb::none(),
        "Return the hashes of blocks, or of blocks ^ delta, each with its index.");
  m.def("chi_sum", &chi_sum, nb::arg("leaves"), nb::arg("chi_seed"), nb::arg("pool"),
        nb::arg("tier") = nb::none(), "Return the sum of chi[i] * leaves[i] in GF(2^128).");
  m.def("chi_at", &chi_at, nb::arg("positions"), nb::arg("chi_seed"), nb::arg("tier") = nb::none(),
        "Return the coefficients chi at some positions.");
  m.def("pack_bits", &pack_bits, nb::arg("blocks"),
        "Return the sum of blocks[i] * X^i in GF(2^128).");
  m.def("multiply_blocks", &multiply_blocks, nb::arg("a"), nb::arg("b"),
        nb::arg("tier") = nb::none(), "Return a product in GF(2^128), for known-answer tests.");
  m.def("transpose_bits", &transpose_bits, nb::arg("rows"),
        "Transpose 128 rows of bits: bit i of row j becomes bit j of block i.");
  m.def("low_bits", &low_bits, nb::arg("blocks"), nb::arg("out").noconvert(),
        "Write the lowest bit of each block as a byte.");
}

}  // namespace nescio::bindings
