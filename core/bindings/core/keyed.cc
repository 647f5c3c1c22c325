#include <mutex>

#include "base/error.h"
#include "base/thread_pool.h"
#include "bindings/bindings.h"
#include "keyed/cuckoo.h"
#include "keyed/key_hash.h"

namespace nescio::bindings {
namespace {

using keyed::KeyWords;
using keyed::Slot;
using Words = InArray<std::uint64_t, nb::shape<-1, 4>>;
using Slots = InArray<Slot, nb::shape<-1>>;
using OutSlots = OutArray<Slot>;
using OutWords = OutArray<std::uint64_t>;

std::span<const KeyWords> keys_of(const Words& words) {
  return {reinterpret_cast<const KeyWords*>(words.data()), words.shape(0)};
}

OutWords hash_keys(const Bytes& seed, const Bytes& data, const Numbers& ends, ThreadPool& pool) {
  Buffer<std::uint64_t> out(checked_product(ends.size(), 4));
  {
    const nb::gil_scoped_release release;
    keyed::hash_keys(span_of(seed), {span_of(data), span_of(ends)},
                     reinterpret_cast<KeyWords*>(out.data()), pool);
  }
  return to_array(std::move(out), {ends.size(), 4});
}

OutSlots to_slots(const std::vector<Slot>& slots) {
  Buffer<Slot> out(slots.size());
  std::copy(slots.begin(), slots.end(), out.data());
  return to_array(std::move(out), {slots.size()});
}

/// The places of keys, for several threads: one call at a time, without the interpreter lock.
class Places {
 public:
  explicit Places(std::uint64_t rows) : cuckoo_(rows) {}

  template <class Work>
  auto with(const Work& work) {
    const nb::gil_scoped_release release;
    const std::scoped_lock lock(mutex_);
    return work(cuckoo_);
  }

  OutSlots find(const Words& words) {
    Buffer<Slot> out(words.shape(0));
    with([&](const keyed::Cuckoo& own) { own.find(keys_of(words), out.data()); });
    return to_array(std::move(out), {words.shape(0)});
  }

  bool insert(const Words& words) {
    return with([&](keyed::Cuckoo& own) { return own.insert(keys_of(words)); });
  }

  std::tuple<OutSlots, OutSlots, OutSlots> moves() {
    const keyed::Moves found = with([](const keyed::Cuckoo& own) { return own.moves(); });
    return {to_slots(found.from), to_slots(found.to), to_slots(found.emptied)};
  }

  std::pair<OutSlots, OutWords> entries() {
    Buffer<Slot> slots;
    Buffer<std::uint64_t> words;
    with([&](const keyed::Cuckoo& own) {
      slots = Buffer<Slot>(own.size());
      words = Buffer<std::uint64_t>(4 * own.size());
      own.entries(slots.data(), reinterpret_cast<KeyWords*>(words.data()));
    });
    const std::size_t count = slots.size();
    return {to_array(std::move(slots), {count}), to_array(std::move(words), {count, 4})};
  }

  void restore(const Slots& slots, const Words& words) {
    with([&](keyed::Cuckoo& own) { own.restore(span_of(slots), keys_of(words)); });
  }

 private:
  std::mutex mutex_;
  keyed::Cuckoo cuckoo_;
};

}  // namespace

void bind_keyed(nb::module_& m) {
  using keyed::Cuckoo;
  m.def("hash_keys", &hash_keys, nb::arg("seed"), nb::arg("data"), nb::arg("ends"), nb::arg("pool"),
        "Return the words of keys: the first three give its places, the last is its fingerprint.");
  nb::class_<Places>(m, "Cuckoo",
                     "The places of a keyed table's keys, by their words: cuckoo hashing.")
      .def(nb::init<std::uint64_t>(), nb::arg("rows"))
      .def_prop_ro(
          "rows", [](Places& p) { return p.with([](const Cuckoo& own) { return own.rows(); }); },
          "Rows of a subtable.")
      .def_prop_ro(
          "bytes", [](Places& p) { return p.with([](const Cuckoo& own) { return own.bytes(); }); },
          "Bytes of memory.")
      .def("__len__",
           [](Places& p) { return p.with([](const Cuckoo& own) { return own.size(); }); })
      .def("find", &Places::find, nb::arg("words"), "Return the slot of each key, or -1.")
      .def("insert", &Places::insert, nb::arg("words"),
           "Insert keys and return true; or insert none, if one is there already or has no place.")
      .def(
          "erase",
          [](Places& p, const Words& words) {
            p.with([&](Cuckoo& own) { own.erase(keys_of(words)); });
          },
          nb::arg("words"), "Delete keys, or none if one is not in the table.")
      .def("moves", &Places::moves,
           "Return slots that keys have left in the last operation, the slots where these keys are "
           "now, and slots that are empty now.")
      .def(
          "undo", [](Places& p) { p.with([](Cuckoo& own) { own.undo(); }); },
          "Undo the last operation.")
      .def("entries", &Places::entries, "Return the slots and the words of all keys, by slot.")
      .def("restore", &Places::restore, nb::arg("slots"), nb::arg("words"),
           "Replace all keys by those that `entries` returned.");
}

}  // namespace nescio::bindings
