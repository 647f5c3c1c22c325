// Runs the assignment of accesses to bins under the sanitizers. Python tests compare it with the
// specification.

#include <algorithm>
#include <random>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "batch/assign.h"
#include "batch/together.h"
#include "check.h"

namespace {

using namespace nescio;

/// Sets of random lengths, whose accesses have random candidates and neighbors.
struct Case {
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> candidates, together, capacity;
  std::size_t choices, neighbors;

  Case(unsigned seed, std::size_t sets, std::size_t longest) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::size_t limit) {
      return static_cast<std::int32_t>(random() % limit);
    };
    choices = 1 + random() % 5;
    neighbors = random() % 4;
    capacity.resize(1 + random() % 60);
    for (std::int32_t& slots : capacity) slots = below(4);
    for (std::size_t set = 0; set < sets; ++set) {
      const std::size_t length = random() % (longest + 1);
      offsets.push_back(offsets.back() + static_cast<std::int64_t>(length));
      for (std::size_t i = 0; i < length * choices; ++i) {
        candidates.push_back(below(capacity.size() + 1) - 1);
      }
      for (std::size_t i = 0; i < length * neighbors; ++i)
        together.push_back(below(length + 1) - 1);
    }
  }

  batch::Sets sets() const { return {offsets, candidates, choices, together, neighbors}; }
};

void check(const Case& made, const std::vector<std::int8_t>& chosen) {
  for (std::size_t set = 0; set + 1 < made.offsets.size(); ++set) {
    const auto first = static_cast<std::size_t>(made.offsets[set]);
    const auto end = static_cast<std::size_t>(made.offsets[set + 1]);
    std::vector<std::int32_t> used(made.capacity.size());
    std::vector<bool> brought(end - first);
    for (std::size_t i = first; i < end; ++i) {
      if (chosen[i] < 0) continue;
      const std::int32_t bin = made.candidates[i * made.choices + chosen[i]];
      CHECK(bin >= 0);
      ++used[bin];
      for (std::size_t j = 0; j < made.neighbors; ++j) {
        const std::int32_t other = made.together[i * made.neighbors + j];
        if (other >= 0) brought[other] = true;
      }
    }
    for (std::size_t bin = 0; bin < used.size(); ++bin) CHECK(used[bin] <= made.capacity[bin]);
    for (std::size_t i = first; i < end; ++i) {
      if (chosen[i] < 0) CHECK((chosen[i] == batch::kCovered) == brought[i - first]);
    }
  }
}

void test_random_sets() {
  ThreadPool pool(3), one(1);
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Case made(seed, seed % 2 == 0 ? 700 : 3, seed % 2 == 0 ? 20 : 2000);
    std::vector<std::int8_t> chosen(made.sets().accesses()), again(chosen.size());
    batch::assign(made.sets(), made.capacity, chosen.data(), pool);
    check(made, chosen);
    batch::assign(made.sets(), made.capacity, again.data(), one);
    CHECK(chosen == again);
  }
}

void test_rows_that_arrive_together() {
  ThreadPool pool(2);
  const std::vector<std::int64_t> offsets{0, 3, 3, 5}, rows{7, 8, 9, 8, 7}, lists{0, -1, 1, -1, 0};
  const std::vector<std::int64_t> neighbors{8, 5, 7, -1};
  std::vector<std::int32_t> found(10);
  batch::find_together(offsets, rows, lists, neighbors, 2, found.data(), pool);
  CHECK((found == std::vector<std::int32_t>{1, -1, -1, -1, 0, -1, -1, -1, 0, -1}));
  const std::vector<std::int64_t> wrong{0, -1, 2, -1, 0};
  CHECK_THROWS(batch::find_together(offsets, rows, wrong, neighbors, 2, found.data(), pool),
               ErrorKind::argument);
}

void test_invalid_sets() {
  ThreadPool pool(1);
  const Case made(2, 5, 10);
  std::vector<std::int8_t> chosen(made.sets().accesses());
  const auto assign = [&](const auto& change) {
    Case other = made;
    change(other);
    batch::assign(other.sets(), other.capacity, chosen.data(), pool);
  };
  assign([](Case&) {});
  CHECK_THROWS(assign([](Case& c) { c.offsets.clear(); }), ErrorKind::argument);
  CHECK_THROWS(assign([](Case& c) { c.offsets.back() += 1; }), ErrorKind::argument);
  CHECK_THROWS(assign([](Case& c) { c.offsets[1] = -1; }), ErrorKind::argument);
  CHECK_THROWS(assign([](Case& c) { c.candidates[0] = 1 << 20; }), ErrorKind::argument);
  CHECK_THROWS(assign([](Case& c) { c.capacity[0] = -1; }), ErrorKind::argument);
  CHECK_THROWS(assign([](Case& c) { c.together.push_back(0); }), ErrorKind::argument);
  CHECK_THROWS(assign([](Case& c) { c.choices = 0; }), ErrorKind::argument);
}

}  // namespace

int main() {
  test_random_sets();
  test_rows_that_arrive_together();
  test_invalid_sets();
  return 0;
}
