// Runs the hashes of keys and their places under the sanitizers. Python tests compare both with the
// specification.

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "check.h"
#include "keyed/cuckoo.h"
#include "keyed/key_hash.h"

namespace {

using namespace nescio;
using keyed::Cuckoo;
using keyed::KeyWords;
using keyed::Slot;

std::vector<KeyWords> random_keys(std::size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<KeyWords> keys(count);
  for (KeyWords& key : keys) key = {{random(), random(), random()}, random() | 1};
  return keys;
}

void test_hashes_of_all_lengths() {
  ThreadPool pool(2);
  const std::vector<std::uint8_t> seed(keyed::kSeedBytes, 7);
  std::vector<std::uint64_t> ends;
  std::uint64_t end = 0;
  for (std::uint64_t length = 0; length < 200; ++length) ends.push_back(end += length);
  const std::vector<std::uint8_t> data(end, 1);
  std::vector<KeyWords> all(ends.size());
  keyed::hash_keys(seed, {data, ends}, all.data(), pool);
  for (std::uint64_t length = 0; length < 200; ++length) {
    KeyWords one;
    const std::vector<std::uint64_t> own = {length};
    keyed::hash_keys(seed, {std::span(data).first(length), own}, &one, pool);
    CHECK(one == all[length]);
    CHECK(one.fingerprint != 0);
  }
}

void test_invalid_hashes() {
  ThreadPool pool(1);
  const std::vector<std::uint8_t> seed(keyed::kSeedBytes), data(10);
  const auto hash = [&](std::span<const std::uint8_t> own, std::vector<std::uint64_t> ends) {
    std::vector<KeyWords> out(ends.size());
    keyed::hash_keys(own, {data, ends}, out.data(), pool);
  };
  hash(seed, {4, 10});
  CHECK_THROWS(hash(std::span(seed).first(31), {4, 10}), ErrorKind::argument);
  CHECK_THROWS(hash(seed, {4, 9}), ErrorKind::argument);
  CHECK_THROWS(hash(seed, {4, 11}), ErrorKind::argument);
  CHECK_THROWS(hash(seed, {11, 10}), ErrorKind::argument);
  CHECK_THROWS(hash(seed, {}), ErrorKind::argument);
}

std::vector<Slot> slots_of(const Cuckoo& table, const std::vector<KeyWords>& keys) {
  std::vector<Slot> slots(keys.size());
  table.find(keys, slots.data());
  return slots;
}

std::vector<KeyWords> all_of(const Cuckoo& table) {
  std::vector<Slot> slots(table.size());
  std::vector<KeyWords> keys(table.size());
  table.entries(slots.data(), keys.data());
  CHECK(slots_of(table, keys) == slots);
  return keys;
}

void test_moves_and_undo() {
  const std::vector<KeyWords> keys = random_keys(2700, 1), more = random_keys(60, 2);
  Cuckoo table(1040);
  CHECK(table.insert(keys));
  const std::vector<Slot> before = slots_of(table, keys);
  const std::vector<KeyWords> held = all_of(table);
  CHECK(table.insert(more));
  CHECK(table.size() == 2760);
  const std::vector<Slot> after = slots_of(table, keys);
  const keyed::Moves moves = table.moves();
  std::size_t moved = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (before[i] == after[i]) continue;
    ++moved;
    const auto at = std::find(moves.from.begin(), moves.from.end(), before[i]);
    CHECK(at != moves.from.end() && moves.to[at - moves.from.begin()] == after[i]);
  }
  CHECK(moved == moves.from.size() && moved > 0 && moves.emptied.empty());
  table.undo();
  CHECK(all_of(table) == held && slots_of(table, keys) == before);
  table.undo();
  CHECK(all_of(table) == held);
}

void test_none_of_an_insertion_that_fails() {
  Cuckoo table(2);
  CHECK(table.insert(random_keys(3, 3)));
  const std::vector<KeyWords> held = all_of(table);
  CHECK(!table.insert(random_keys(4, 4)));  // seven keys, six slots
  CHECK(all_of(table) == held);
  CHECK(!table.insert(std::vector<KeyWords>{held[0]}));
  Cuckoo empty(2);
  CHECK(!empty.insert(random_keys(7, 5)));
  CHECK(empty.size() == 0 && all_of(empty).empty());
}

void test_erase() {
  const std::vector<KeyWords> keys = random_keys(100, 6);
  Cuckoo table(50);
  CHECK(table.insert(keys));
  const std::vector<KeyWords> some(keys.begin(), keys.begin() + 10);
  const std::vector<Slot> slots = slots_of(table, some);
  table.erase(some);
  std::vector<Slot> emptied = table.moves().emptied, expected = slots;
  std::sort(expected.begin(), expected.end());
  CHECK(emptied == expected && table.size() == 90);
  CHECK_THROWS(table.erase(some), ErrorKind::argument);
  CHECK(table.size() == 90);
  CHECK_THROWS(table.erase(std::vector<KeyWords>{keys[50], keys[50]}), ErrorKind::argument);
  CHECK(table.size() == 90 && slots_of(table, {keys[50]})[0] >= 0);
}

void test_sizes() {
  CHECK_THROWS(Cuckoo(0), ErrorKind::argument);
  CHECK_THROWS(Cuckoo(Cuckoo::kMaxRows + 1), ErrorKind::argument);
}

}  // namespace

int main() {
  test_hashes_of_all_lengths();
  test_invalid_hashes();
  test_moves_and_undo();
  test_none_of_an_insertion_that_fails();
  test_erase();
  test_sizes();
  std::printf("good\n");
}
