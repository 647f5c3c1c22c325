#include "batch/pairs.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/math.h"
#include "batch/sets.h"

namespace nescio::batch {
namespace {

constexpr std::size_t kRowsPerTask = 64;

void check_sets(const UserSets& sets) {
  check_offsets(sets.offsets, sets.rows.size());
  if (sets.users.size() != sets.offsets.size() - 1) {
    throw Error(ErrorKind::argument, "users of sets: found " + std::to_string(sets.users.size()) +
                                         ", expected " + std::to_string(sets.offsets.size() - 1) +
                                         ", one for each set");
  }
  std::int64_t before = 0;
  for (const std::int64_t user : sets.users) {
    if (user < before || user >> 31 != 0) {
      throw Error(ErrorKind::argument, "users of sets: found " + std::to_string(user) + " after " +
                                           std::to_string(before) +
                                           ", expected ascending numbers from 0 to 2^31 - 1");
    }
    before = user;
  }
  for (const std::int64_t row : sets.rows) {
    if (row >= 0 && static_cast<std::size_t>(row) < sets.limit) continue;
    throw Error(ErrorKind::argument, "rows of sets: found " + std::to_string(row) +
                                         ", expected 0 to " + std::to_string(sets.limit) + " - 1");
  }
}

/// The sets of each row: those of row r are sets[starts[r]] to sets[starts[r + 1] - 1], ascending.
struct SetsOfRows {
  explicit SetsOfRows(const UserSets& of) : starts(of.limit + 1), sets(of.rows.size()) {
    for (const std::int64_t row : of.rows) ++starts[static_cast<std::size_t>(row) + 1];
    for (std::size_t row = 0; row < of.limit; ++row) starts[row + 1] += starts[row];
    std::vector<std::size_t> next(starts.begin(), starts.end() - 1);
    for (std::size_t set = 0; set + 1 < of.offsets.size(); ++set) {
      for (std::int64_t i = of.offsets[set]; i < of.offsets[set + 1]; ++i) {
        const auto row = static_cast<std::size_t>(of.rows[static_cast<std::size_t>(i)]);
        sets[next[row]++] = set;
      }
    }
  }

  std::vector<std::size_t> starts;
  std::vector<std::size_t> sets;
};

/// Counts the pairs of one row after the other.
class Counter {
 public:
  Counter(const UserSets& sets, const SetsOfRows& by_row, std::int64_t min_users)
      : sets_(sets), by_row_(by_row), min_users_(min_users), tallies_(sets.limit) {}

  /// Writes the rows that are most often together with a row.
  void write(std::size_t row, std::span<std::int64_t> out) {
    count(row);
    std::erase_if(found_, [&](std::uint32_t other) {
      if (tallies_[other].users >= min_users_) return false;
      tallies_[other] = {};
      return true;
    });
    const std::size_t best = std::min(out.size(), found_.size());
    std::partial_sort(found_.begin(), found_.begin() + static_cast<std::ptrdiff_t>(best),
                      found_.end(), [&](std::uint32_t one, std::uint32_t other) {
                        const std::int64_t mine = tallies_[one].sets;
                        const std::int64_t its = tallies_[other].sets;
                        return mine != its ? mine > its : one < other;
                      });
    std::fill(std::copy_n(found_.begin(), best, out.begin()), out.end(), -1);
    for (const std::uint32_t other : found_) tallies_[other] = {};
    found_.clear();
  }

 private:
  struct Tally {
    std::int32_t sets = 0;
    std::int32_t users = 0;
    std::int32_t last_user = -1;
  };

  void count(std::size_t row) {
    for (std::size_t at = by_row_.starts[row]; at < by_row_.starts[row + 1]; ++at) {
      const std::size_t set = by_row_.sets[at];
      const auto user = static_cast<std::int32_t>(sets_.users[set]);
      const auto first = static_cast<std::size_t>(sets_.offsets[set]);
      const auto size = static_cast<std::size_t>(sets_.offsets[set + 1]) - first;
      for (const std::int64_t other : sets_.rows.subspan(first, size)) {
        if (static_cast<std::size_t>(other) == row) continue;
        Tally& tally = tallies_[static_cast<std::size_t>(other)];
        if (tally.sets++ == 0) found_.push_back(static_cast<std::uint32_t>(other));
        tally.users += tally.last_user != user;
        tally.last_user = user;
      }
    }
  }

  const UserSets& sets_;
  const SetsOfRows& by_row_;
  std::int64_t min_users_;
  std::vector<Tally> tallies_;
  std::vector<std::uint32_t> found_;
};

}  // namespace

void count_pairs(const UserSets& sets, std::size_t count, std::int64_t min_users, std::int64_t* out,
                 ThreadPool& pool) {
  if (sets.limit >> 32 != 0) {
    throw Error(ErrorKind::argument, "rows of sets: found a limit of " +
                                         std::to_string(sets.limit) + ", expected below 2^32");
  }
  check_sets(sets);
  const SetsOfRows by_row(sets);
  std::vector<std::unique_ptr<Counter>> counters(pool.threads());
  pool.run(ceil_div(sets.limit, kRowsPerTask), [&](std::size_t task, unsigned worker) {
    std::unique_ptr<Counter>& counter = counters[worker];
    if (!counter) counter = std::make_unique<Counter>(sets, by_row, min_users);
    const std::size_t end = std::min(sets.limit, (task + 1) * kRowsPerTask);
    for (std::size_t row = task * kRowsPerTask; row < end; ++row) {
      counter->write(row, {out + row * count, count});
    }
  });
}

}  // namespace nescio::batch
