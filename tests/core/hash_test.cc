// Runs the hashes of records and the check of rows under the sanitizers, with every tier and at odd
// sizes. Python tests compare the hashes with Python's own SHA-256.

#include <algorithm>
#include <vector>

#include "base/cpu.h"
#include "base/error.h"
#include "base/math.h"
#include "base/thread_pool.h"
#include "check.h"
#include "hash/records.h"
#include "pir/check.h"

namespace {

using namespace nescio;
using Bytes = std::vector<std::uint8_t>;

Bytes varied_bytes(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(i * 37 >> 3);
  return bytes;
}

Bytes hashes_of(const Bytes& records, std::size_t bytes, unsigned level, Tier tier) {
  ThreadPool pool(2);
  const std::size_t count = records.size() / bytes;
  Bytes out(count * hash::kHashBytes);
  hash::hash_records({records.data(), count, bytes}, level, {nullptr, 0}, out.data(), pool, tier);
  return out;
}

void test_tiers_agree(Tier tier) {
  for (std::size_t bytes : {1u, 15u, 16u, 39u, 40u, 48u, 63u, 64u, 200u, 5000u}) {
    for (std::size_t count : {0u, 1u, 2u, 7u, 9u, 15u, 17u, 70u}) {
      const Bytes records = varied_bytes(count * bytes);
      const Bytes found = hashes_of(records, bytes, 1, tier);
      CHECK(found == hashes_of(records, bytes, 1, Tier::portable));
      std::vector<std::uint64_t> numbers;
      for (std::size_t i = 0; i < count; ++i) numbers.push_back(i);
      Bytes at(found.size());
      hash::hash_records({records.data(), count, bytes}, 1, {numbers.data(), 0}, at.data(), tier);
      CHECK(found == at);
    }
  }
}

void test_invalid_records(Tier tier) {
  Bytes out(hash::kHashBytes);
  CHECK_THROWS(hash::hash_records({out.data(), 1, 1}, 8, {nullptr, 0}, out.data(), tier),
               ErrorKind::argument);
  CHECK_THROWS(hash::hash_records({out.data(), 1, 0}, 0, {nullptr, 0}, out.data(), tier),
               ErrorKind::argument);
}

/// A table with its hash tables, and lookups in them.
struct Lookups {
  Lookups(std::vector<std::uint64_t> indices_, std::size_t rows_in_table, std::size_t bytes,
          unsigned levels, Tier tier)
      : indices(std::move(indices_)), row_bytes(bytes) {
    const Bytes table = varied_bytes(rows_in_table * bytes);
    tops = hashes_of(table, bytes, 0, tier);
    rows = select(table, bytes, 1);
    std::uint64_t below = 1;
    for (unsigned level = 1; level <= levels; ++level) {
      tops.resize(ceil_div(tops.size(), hash::kHashRowBytes) * hash::kHashRowBytes);
      below *= hash::kArity;
      records.push_back(select(tops, hash::kHashRowBytes, below));
      tops = hashes_of(tops, hash::kHashRowBytes, level, tier);
    }
  }

  /// Returns the rows of a table with the numbers index / below.
  Bytes select(const Bytes& table, std::size_t bytes, std::uint64_t below) const {
    Bytes found;
    for (std::uint64_t i : indices) {
      const auto begin = table.begin() + static_cast<std::ptrdiff_t>(i / below * bytes);
      found.insert(found.end(), begin, begin + static_cast<std::ptrdiff_t>(bytes));
    }
    return found;
  }

  bool pass(Tier tier) const {
    std::vector<const std::uint8_t*> tables;
    for (const Bytes& level : records) tables.push_back(level.data());
    return pir::check_rows({indices, rows.data(), row_bytes, tables, tops}, tier);
  }

  std::vector<std::uint64_t> indices;
  std::size_t row_bytes;
  Bytes rows, tops;
  std::vector<Bytes> records;
};

void test_rows_are_checked(Tier tier) {
  for (unsigned levels : {0u, 1u, 2u, 3u}) {
    for (std::size_t count : {0u, 1u, 5u, 64u, 131u}) {
      std::vector<std::uint64_t> indices;
      for (std::size_t i = 0; i < count; ++i) indices.push_back((i * 977 + 299) % 300);
      const Lookups sound(indices, 300, 39, levels, tier);
      CHECK(sound.pass(tier));
      if (count == 0) continue;
      Lookups changed = sound;
      changed.rows.back() ^= 1;
      CHECK(!changed.pass(tier));
      for (std::size_t level = 0; level < levels; ++level) {
        changed = sound;
        changed.records[level].back() ^= 1;
        CHECK(!changed.pass(tier));
      }
      for (std::uint64_t beyond : {std::uint64_t{1} << 63, UINT64_MAX, std::uint64_t{70'000}}) {
        changed = sound;
        changed.indices.back() = beyond;
        CHECK(!changed.pass(tier));
      }
    }
  }
}

void test_invalid_shapes(Tier tier) {
  const Bytes bytes(hash::kHashRowBytes);
  const std::uint64_t index = 0;
  const std::vector<const std::uint8_t*> eight(8, bytes.data());
  const std::span<const std::uint8_t> top(bytes.data(), hash::kHashBytes);
  CHECK_THROWS(pir::check_rows({{&index, 1}, bytes.data(), 1, eight, top}, tier),
               ErrorKind::argument);
  CHECK_THROWS(pir::check_rows({{&index, 1}, bytes.data(), 1, {}, top.first(31)}, tier),
               ErrorKind::argument);
  CHECK_THROWS(pir::check_rows({{&index, 1}, bytes.data(), 0, {}, top}, tier), ErrorKind::argument);
}

}  // namespace

int main() {
  for (Tier tier : supported_tiers()) {
    for (auto test :
         {test_tiers_agree, test_invalid_records, test_rows_are_checked, test_invalid_shapes}) {
      test(tier);
    }
    std::printf("tier %s: good\n", tier_name(tier));
  }
}
