#include "base/error.h"
#include "base/thread_pool.h"
#include "bindings/bindings.h"
#include "hash/records.h"

namespace nescio::bindings {
namespace {

OutBytes hash_all(const ByteRows& records, unsigned level, const hash::Numbers& numbers,
                  ThreadPool& pool, const std::optional<std::string>& tier) {
  const std::size_t count = records.shape(0);
  Buffer<std::uint8_t> out(checked_product(count, hash::kHashBytes));
  {
    const nb::gil_scoped_release release;
    hash::hash_records({records.data(), count, records.shape(1)}, level, numbers, out.data(), pool,
                       tier_of(tier));
  }
  return to_array(std::move(out), {count, hash::kHashBytes});
}

OutBytes hash_records(const ByteRows& records, unsigned level, std::uint64_t first,
                      ThreadPool& pool, const std::optional<std::string>& tier) {
  return hash_all(records, level, {nullptr, first}, pool, tier);
}

OutBytes hash_records_at(const ByteRows& records, unsigned level, const Numbers& numbers,
                         ThreadPool& pool, const std::optional<std::string>& tier) {
  if (numbers.size() != records.shape(0)) {
    throw Error(ErrorKind::argument, "numbers of records: found " + std::to_string(numbers.size()) +
                                         ", expected one for each of " +
                                         std::to_string(records.shape(0)) + " records");
  }
  return hash_all(records, level, {numbers.data(), 0}, pool, tier);
}

}  // namespace

void bind_hash(nb::module_& m) {
  m.def("hash_records", &hash_records, nb::arg("records"), nb::arg("level"), nb::arg("first"),
        nb::arg("pool"), nb::arg("tier") = nb::none(),
        "Return the hashes of records with the numbers first, first + 1, ...");
  m.def("hash_records_at", &hash_records_at, nb::arg("records"), nb::arg("level"),
        nb::arg("numbers"), nb::arg("pool"), nb::arg("tier") = nb::none(),
        "Return the hashes of records with the given numbers.");
}

}  // namespace nescio::bindings
