#include <cstring>

#include "base/thread_pool.h"
#include "bindings/bindings.h"
#include "lut/fields.h"
#include "lut/lookup.h"
#include "lut/tree.h"

namespace nescio::bindings {
namespace {

using lut::Field;
using lut::Words;
using WordRows = InArray<std::uint64_t, nb::ndim<2>>;
using WordRowsInOut = nb::ndarray<std::uint64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Ring = nb::ndarray<std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Opened = InArray<std::uint16_t, nb::ndim<1>>;
using FieldSizes = std::tuple<unsigned, unsigned, unsigned>;

Field field_of(const FieldSizes& sizes) {
  return {std::get<0>(sizes), std::get<1>(sizes), std::get<2>(sizes)};
}

Words<const std::uint64_t> words_of(const WordRows& array) {
  return {array.data(), array.shape(1)};
}

/// Throws unless arrays have a line for each transfer.
void check_counts(std::size_t count, std::initializer_list<std::size_t> found) {
  for (const std::size_t size : found) {
    if (size != count) {
      throw Error(ErrorKind::argument, "arrays of transfers: found " + std::to_string(size) +
                                           " lines, expected " + std::to_string(count));
    }
  }
}

std::uint32_t* numbers_of(const std::optional<Ring>& numbers, std::size_t count) {
  if (!numbers) return nullptr;
  check_counts(count, {numbers->size()});
  return numbers->data();
}

std::size_t message_bytes(const FieldSizes& sizes, std::size_t count) {
  return lut::message_bytes(field_of(sizes), count);
}

OutBytes write_message(const FieldSizes& sizes, const std::optional<WordRows>& shares,
                       const Bytes& bits, const WordRows& zero, const WordRows& one,
                       const std::optional<Ring>& numbers, ThreadPool& pool) {
  const Field field = field_of(sizes);
  const std::size_t count = bits.size(), most = shares ? 64 * shares->shape(1) : 0;
  check_counts(count, {zero.shape(0), one.shape(0), shares ? shares->shape(0) : count});
  if (most < field.entries) {
    throw Error(ErrorKind::argument, "shares: found " + std::to_string(most) + " bits, expected " +
                                         std::to_string(field.entries));
  }
  std::uint32_t* added = numbers_of(numbers, count);
  Buffer<std::uint8_t> out(lut::message_bytes(field, count));
  {
    const nb::gil_scoped_release release;
    const Words<const std::uint64_t> own =
        shares ? words_of(*shares) : Words<const std::uint64_t>{};
    lut::write_message(field, count, {own, bits.data(), words_of(zero), words_of(one)}, out.data(),
                       added, pool);
  }
  const std::size_t bytes = out.size();
  return to_array(std::move(out), {bytes});
}

OutArray<std::uint64_t> read_message(const FieldSizes& sizes, const Bytes& choices,
                                     const WordRows& pads, const Bytes& message,
                                     const std::optional<Ring>& numbers, ThreadPool& pool) {
  const Field field = field_of(sizes);
  const std::size_t count = choices.size(), words = (field.entries + 63) / 64;
  check_counts(count, {pads.shape(0)});
  if (message.size() != lut::message_bytes(field, count)) {
    throw Error(ErrorKind::argument, "a message of transfers: found " +
                                         std::to_string(message.size()) + " bytes, expected " +
                                         std::to_string(lut::message_bytes(field, count)));
  }
  std::uint32_t* added = numbers_of(numbers, count);
  Buffer<std::uint64_t> out(checked_product(count, words));
  {
    const nb::gil_scoped_release release;
    lut::read_message(field, count, {choices.data(), words_of(pads), message.data()},
                      {out.data(), words}, added, pool);
  }
  return to_array(std::move(out), {count, words});
}

void grow(unsigned level, const Bytes& bits, const WordRows& zero, const WordRows& received,
          const WordRowsInOut& shares, ThreadPool& pool) {
  const std::size_t count = bits.size();
  check_counts(count, {zero.shape(0), received.shape(0), shares.shape(0)});
  const nb::gil_scoped_release release;
  lut::grow(level, count, bits.data(), words_of(zero), words_of(received),
            {shares.data(), shares.shape(1)}, pool);
}

template <class T>
OutArray<T> look_up(unsigned bits, const InArray<T, nb::ndim<1>>& twice, const WordRows& shares,
                    const Opened& opened, ThreadPool& pool,
                    const std::optional<std::string>& tier) {
  const std::size_t count = opened.size(), expected = lut::table_length<T>(bits);
  check_counts(count, {shares.shape(0)});
  if (twice.size() != expected) {
    throw Error(ErrorKind::argument, "a table, twice: found " + std::to_string(twice.size()) +
                                         " entries, expected " + std::to_string(expected));
  }
  const Tier chosen = tier_of(tier);
  Buffer<T> out(count);
  {
    const nb::gil_scoped_release release;
    lut::look_up({bits, twice.data()}, count, words_of(shares), opened.data(), out.data(), pool,
                 chosen);
  }
  return to_array(std::move(out), {count});
}

OutBytes pack(unsigned bits, const Opened& numbers) {
  Buffer<std::uint8_t> out(lut::message_bytes({bits, 0, 0}, numbers.size()));
  lut::pack(bits, numbers.size(), numbers.data(), out.data());
  const std::size_t bytes = out.size();
  return to_array(std::move(out), {bytes});
}

OutArray<std::uint16_t> unpack(unsigned bits, std::size_t count, const Bytes& packed) {
  const std::size_t expected = lut::message_bytes({bits, 0, 0}, count);
  if (packed.size() != expected) {
    throw Error(ErrorKind::argument, "packed numbers: found " + std::to_string(packed.size()) +
                                         " bytes, expected " + std::to_string(expected));
  }
  Buffer<std::uint16_t> out(count);
  lut::unpack(bits, count, packed.data(), out.data());
  return to_array(std::move(out), {count});
}

void add_dabits(unsigned number, const Opened& opened,
                const InArray<std::uint32_t, nb::ndim<1>>& dabits, const Ring& totals) {
  if (number >= 16) throw Error(ErrorKind::argument, "a daBit's number: expected at most 15");
  check_counts(opened.size(), {dabits.size(), totals.size()});
  lut::add_dabits(number, opened.size(), opened.data(), dabits.data(), totals.data());
}

using Tiers = std::optional<std::string>;

using Controls = InArray<std::uint32_t, nb::ndim<1>>;

Block base_of(const nb::bytes& base) {
  Block block;
  if (base.size() != sizeof(block)) {
    throw Error(ErrorKind::argument, "the base of keys: found " + std::to_string(base.size()) +
                                         " bytes, expected " + std::to_string(sizeof(block)));
  }
  std::memcpy(&block, base.data(), sizeof(block));
  return block;
}

std::pair<OutArray<std::uint64_t>, OutArray<std::uint32_t>> expand_trees(
    unsigned level, bool are_leaves, const nb::bytes& base, const WordRowsInOut& nodes,
    ThreadPool& pool, const Tiers& tier) {
  const lut::Trees trees = {level, are_leaves, nodes.shape(0)};
  const Block first_key = base_of(base);
  const Tier chosen = tier_of(tier);
  Buffer<std::uint64_t> sums(2 * trees.count);
  Buffer<std::uint32_t> controls(trees.count);
  {
    const nb::gil_scoped_release release;
    lut::expand_trees(trees, first_key, {nodes.data(), nodes.shape(1)}, sums.data(),
                      controls.data(), pool, chosen);
  }
  return {to_array(std::move(sums), {trees.count, 2}),
          to_array(std::move(controls), {trees.count})};
}

void correct_trees(unsigned level, bool are_leaves, const NumberPairs& corrections,
                   const Controls& controls, const WordRowsInOut& nodes, ThreadPool& pool) {
  const lut::Trees trees = {level, are_leaves, nodes.shape(0)};
  check_counts(trees.count, {corrections.shape(0), controls.size()});
  const nb::gil_scoped_release release;
  lut::correct_trees(trees, corrections.data(), controls.data(), {nodes.data(), nodes.shape(1)},
                     pool);
}

}  // namespace

void bind_lut(nb::module_& m) {
  m.def("lut_message_bytes", &message_bytes, nb::arg("field"), nb::arg("count"),
        "Return the bytes of a message of `count` transfers.");
  m.def("lut_write_message", &write_message, nb::arg("field"), nb::arg("shares").none(),
        nb::arg("bits"), nb::arg("zero"), nb::arg("one"), nb::arg("numbers").none(),
        nb::arg("pool"), "Write the message of the sender of transfers, and add to its numbers.");
  m.def("lut_read_message", &read_message, nb::arg("field"), nb::arg("choices"), nb::arg("pads"),
        nb::arg("message"), nb::arg("numbers").none(), nb::arg("pool"),
        "Return the receiver's shares of entries, and add to its numbers.");
  m.def("lut_grow", &grow, nb::arg("level"), nb::arg("bits"), nb::arg("zero"), nb::arg("received"),
        nb::arg("shares"), nb::arg("pool"), "Double shares of one-hot vectors, in place.");
  m.def("lut_expand_trees", &expand_trees, nb::arg("level"), nb::arg("are_leaves"), nb::arg("base"),
        nb::arg("nodes"), nb::arg("pool"), nb::arg("tier") = nb::none(),
        "Expand nodes in place; return the XOR of each table's hashes, and the control bits.");
  m.def("lut_correct_trees", &correct_trees, nb::arg("level"), nb::arg("are_leaves"),
        nb::arg("corrections"), nb::arg("controls"), nb::arg("nodes"), nb::arg("pool"),
        "Add corrections to what replaced nodes with control bit 1, in place.");
  m.def("lut_pack", &pack, nb::arg("bits"), nb::arg("numbers"), "Pack the lowest bits of numbers.");
  m.def("lut_unpack", &unpack, nb::arg("bits"), nb::arg("count"), nb::arg("packed"),
        "Return numbers that were packed.");
  m.def(
      "lut_table_padding", [] { return lut::kPadding; },
      "Return the bytes behind a table that kernels read and do not use.");
  m.def("lut_look_up", &look_up<std::uint8_t>, nb::arg("bits"), nb::arg("twice"), nb::arg("shares"),
        nb::arg("opened"), nb::arg("pool"), nb::arg("tier") = nb::none(),
        "Return shares of entries of a table at opened places.");
  m.def("lut_look_up", &look_up<std::uint16_t>, nb::arg("bits"), nb::arg("twice"),
        nb::arg("shares"), nb::arg("opened"), nb::arg("pool"), nb::arg("tier") = nb::none(),
        "Return shares of entries of a table at opened places.");
  m.def("lut_add_dabits", &add_dabits, nb::arg("number"), nb::arg("opened"), nb::arg("dabits"),
        nb::arg("totals"), "Add shares of daBits to numbers, plus or minus by an opened bit.");
}

}  // namespace nescio::bindings
