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

lut::Trees trees_of(unsigned level, std::size_t count, const nb::bytes& base) {
  if (base.size() != sizeof(Block)) {
    throw Error(ErrorKind::argument, "the base of keys: found " + std::to_string(base.size()) +
                                         " bytes, expected " + std::to_string(sizeof(Block)));
  }
  lut::Trees trees{level, count, {}};
  std::memcpy(&trees.base, base.data(), sizeof(Block));
  return trees;
}

OutArray<std::uint64_t> sum_hashes(unsigned level, const nb::bytes& base, const WordRows& nodes,
                                   ThreadPool& pool, const Tiers& tier) {
  const lut::Trees trees = trees_of(level, nodes.shape(0), base);
  const Tier chosen = tier_of(tier);
  Buffer<std::uint64_t> out(2 * trees.count);
  {
    const nb::gil_scoped_release release;
    lut::sum_hashes(trees, words_of(nodes), out.data(), pool, chosen);
  }
  return to_array(std::move(out), {trees.count, 2});
}

template <auto kGrow>
void grow_nodes(unsigned level, const nb::bytes& base, const NumberPairs& corrections,
                const WordRowsInOut& nodes, ThreadPool& pool, const Tiers& tier) {
  const lut::Trees trees = trees_of(level, nodes.shape(0), base);
  check_counts(trees.count, {corrections.shape(0)});
  const Tier chosen = tier_of(tier);
  const nb::gil_scoped_release release;
  kGrow(trees, corrections.data(), {nodes.data(), nodes.shape(1)}, pool, chosen);
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
  m.def("lut_sum_hashes", &sum_hashes, nb::arg("level"), nb::arg("base"), nb::arg("nodes"),
        nb::arg("pool"), nb::arg("tier") = nb::none(),
        "Return the XOR of the hashes of each table's nodes, two words.");
  m.def("lut_grow_trees", &grow_nodes<lut::grow_trees>, nb::arg("level"), nb::arg("base"),
        nb::arg("corrections"), nb::arg("nodes"), nb::arg("pool"), nb::arg("tier") = nb::none(),
        "Replace nodes by their children, in place.");
  m.def("lut_grow_leaves", &grow_nodes<lut::grow_leaves>, nb::arg("level"), nb::arg("base"),
        nb::arg("corrections"), nb::arg("nodes"), nb::arg("pool"), nb::arg("tier") = nb::none(),
        "Replace leaves of trees by shares of the entries of one-hot vectors, in place.");
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
