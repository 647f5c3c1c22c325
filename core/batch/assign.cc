#include "batch/assign.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "batch/sets.h"

namespace nescio::batch {
namespace {

constexpr std::int32_t kNone = -1;

/// A bin while a set is assigned. `stamp` is the set for which the other values hold.
struct Bin {
  std::uint64_t stamp = 0;
  std::uint64_t seen = 0;    // the search that found it last
  std::int32_t holders = 0;  // accesses that it serves
  std::int32_t mover = 0;    // the access that would enter it on the path of that search
  std::int8_t choice = 0;    // by this candidate
  bool closed = false;       // no path from here to a free bin, now or later
};

/// Assigns sets one after the other, with memory of its own.
class Assigner {
 public:
  Assigner(const Sets& sets, std::span<const std::int32_t> capacity,
           std::span<const std::int64_t> starts)
      : sets_(sets),
        capacity_(capacity),
        starts_(starts),
        bins_(capacity.size()),
        holders_(static_cast<std::size_t>(starts.back())) {}

  void assign(std::size_t set, std::int8_t* out) {
    first_ = sets_.offsets[set];
    count_ = static_cast<std::int32_t>(sets_.offsets[set + 1] - first_);
    check();
    ++stamp_;
    chosen_ = out + first_;
    std::fill_n(chosen_, count_, kDropped);
    slots_.resize(static_cast<std::size_t>(count_));
    gains_.assign(static_cast<std::size_t>(count_), static_cast<std::int32_t>(sets_.neighbors));
    for (auto gain = static_cast<std::int32_t>(sets_.neighbors); gain >= 0; --gain) pass(gain);
  }

 private:
  std::span<const std::int32_t> row_of(std::span<const std::int32_t> all, std::size_t width,
                                       std::int32_t access) const {
    return all.subspan(static_cast<std::size_t>(first_ + access) * width, width);
  }
  std::span<const std::int32_t> candidates(std::int32_t access) const {
    return row_of(sets_.candidates, sets_.choices, access);
  }

  /// Throws for a candidate that is not a bin or a neighbor that is not an access of the set.
  void check() const {
    const auto check_range = [&](std::span<const std::int32_t> all, std::size_t width,
                                 std::int64_t end, const char* what) {
      const std::size_t begin = static_cast<std::size_t>(first_) * width;
      for (const std::int32_t value :
           all.subspan(begin, static_cast<std::size_t>(count_) * width)) {
        if (value >= kNone && value < end) continue;
        throw Error(ErrorKind::argument, std::string(what) + ": found " + std::to_string(value) +
                                             ", expected -1 to " + std::to_string(end - 1));
      }
    };
    check_range(sets_.candidates, sets_.choices, std::ssize(capacity_), "the bin of an access");
    check_range(sets_.together, sets_.neighbors, count_, "an access that arrives with another");
  }

  /// Places the accesses that bring so many others. `gains_` has upper bounds: what an access brings
  /// only becomes less, so none that a pass has gone by would be next again.
  void pass(std::int32_t gain) {
    for (std::int32_t access = 0; access < count_; ++access) {
      std::int32_t& bound = gains_[static_cast<std::size_t>(access)];
      if (bound != gain || chosen_[access] != kDropped) continue;
      bound = brings(access);
      if (bound != gain) continue;
      bound = kNone;
      if (place(access)) cover(access);
    }
  }

  /// Counts the accesses that one would bring and that still need a bin.
  std::int32_t brings(std::int32_t access) const {
    std::int32_t count = 0;
    for (const std::int32_t other : row_of(sets_.together, sets_.neighbors, access)) {
      count += other != kNone && chosen_[other] == kDropped ? 1 : 0;
    }
    return count;
  }

  /// Marks the accesses that one brings, except those that have a bin already.
  void cover(std::int32_t access) {
    for (const std::int32_t other : row_of(sets_.together, sets_.neighbors, access)) {
      if (other != kNone && chosen_[other] == kDropped) chosen_[other] = kCovered;
    }
  }

  Bin& bin(std::int32_t number) {
    Bin& found = bins_[static_cast<std::size_t>(number)];
    if (found.stamp != stamp_) {
      found.stamp = stamp_;
      found.holders = 0;
      found.closed = false;
    }
    return found;
  }

  /// Finds a bin for an access, breadth first over the bins that its path would enter.
  bool place(std::int32_t access) {
    ++search_;
    waiting_.clear();
    if (enter(access)) return true;
    for (std::size_t next = 0; next < waiting_.size(); ++next) {
      const std::int32_t full = waiting_[next];
      const std::int64_t begin = starts_[static_cast<std::size_t>(full)];
      for (std::int32_t i = 0; i < bin(full).holders; ++i) {
        if (enter(holders_[static_cast<std::size_t>(begin + i)])) return true;
      }
    }
    for (const std::int32_t full : waiting_) bin(full).closed = true;
    return false;
  }

  /// Lets an access enter a free bin if it may use one; else remembers the full bins.
  bool enter(std::int32_t access) {
    const std::span<const std::int32_t> own = candidates(access);
    for (std::size_t choice = 0; choice < own.size(); ++choice) {
      if (own[choice] == kNone) continue;
      Bin& entered = bin(own[choice]);
      if (entered.closed || entered.seen == search_) continue;
      entered.seen = search_;
      entered.mover = access;
      entered.choice = static_cast<std::int8_t>(choice);
      if (entered.holders < capacity_[static_cast<std::size_t>(own[choice])]) {
        move(own[choice]);
        return true;
      }
      waiting_.push_back(own[choice]);
    }
    return false;
  }

  /// Moves the accesses of a path by one bin each; the last one enters a free bin.
  void move(std::int32_t number) {
    std::int64_t slot = starts_[static_cast<std::size_t>(number)] + bin(number).holders++;
    for (;;) {
      const Bin& entered = bin(number);
      const std::int32_t mover = entered.mover;
      const std::int8_t before = chosen_[mover];
      std::int64_t& own_slot = slots_[static_cast<std::size_t>(mover)];
      holders_[static_cast<std::size_t>(slot)] = mover;
      chosen_[mover] = entered.choice;
      std::swap(slot, own_slot);
      if (before == kDropped) return;
      number = candidates(mover)[static_cast<std::size_t>(before)];
    }
  }

  const Sets& sets_;
  std::span<const std::int32_t> capacity_;
  std::span<const std::int64_t> starts_;  // of the holders of each bin
  std::vector<Bin> bins_;
  std::vector<std::int32_t> holders_;
  std::vector<std::int32_t> waiting_;  // full bins that the search found
  std::vector<std::int32_t> gains_;
  std::vector<std::int64_t> slots_;  // for each access that has a bin: its place in holders_
  std::uint64_t stamp_ = 0;
  std::uint64_t search_ = 0;
  std::int64_t first_ = 0;
  std::int32_t count_ = 0;
  std::int8_t* chosen_ = nullptr;
};

void check_shapes(const Sets& sets, std::span<const std::int32_t> capacity) {
  const auto require = [](bool good, const std::string& what) {
    if (!good) throw Error(ErrorKind::argument, what);
  };
  require(sets.choices >= 1 && sets.choices <= kMaxChoices,
          "candidates: found " + std::to_string(sets.choices) + " for each access, expected 1 to " +
              std::to_string(kMaxChoices));
  require(
      sets.together.size() == checked_product(sets.accesses(), sets.neighbors),
      "neighbors: expected a line for each of " + std::to_string(sets.accesses()) + " accesses");
  require(capacity.size() < std::size_t{1} << 31, "bins: expected at most 2^31 - 1");
  for (const std::int32_t slots : capacity) {
    require(slots >= 0,
            "capacity of a bin: found " + std::to_string(slots) + ", expected 0 or more");
  }
  check_offsets(sets.offsets, sets.accesses());
}

/// Returns the first place of each bin's holders: no bin serves more than the largest set has.
std::vector<std::int64_t> places_of(const Sets& sets, std::span<const std::int32_t> capacity) {
  std::int64_t largest = 0;
  for (std::size_t set = 0; set < sets.count(); ++set) {
    largest = std::max(largest, sets.offsets[set + 1] - sets.offsets[set]);
  }
  std::vector<std::int64_t> starts{0};
  for (const std::int32_t slots : capacity) {
    starts.push_back(starts.back() + std::min<std::int64_t>(slots, largest));
  }
  return starts;
}

}  // namespace

void assign(const Sets& sets, std::span<const std::int32_t> capacity, std::int8_t* out,
            ThreadPool& pool) {
  check_shapes(sets, capacity);
  const std::vector<std::int64_t> starts = places_of(sets, capacity);
  std::vector<std::unique_ptr<Assigner>> workers(pool.threads());
  for_sets(sets.count(), pool, [&](std::size_t first, std::size_t end, unsigned worker) {
    if (!workers[worker]) workers[worker] = std::make_unique<Assigner>(sets, capacity, starts);
    for (std::size_t set = first; set < end; ++set) workers[worker]->assign(set, out);
  });
}

}  // namespace nescio::batch
