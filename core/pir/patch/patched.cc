#include "pir/patch/patched.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/math.h"
#include "dpf/shares.h"
#include "ggm/leaves.h"
#include "pir/answer.h"
#include "pir/patch/taken.h"
#include "pir/plan.h"

namespace nescio::pir {
namespace {

/// Bytes of the shares of all keys of a task that are computed at a time: a quarter of a 1 MB
/// second-level cache.
constexpr std::size_t kLeafBytes = 256 << 10;

/// Maximum keys of a task, and the least if there are several threads: fewer would not fill a product.
constexpr std::size_t kMostKeys = 64;
constexpr std::size_t kFewestKeys = 8;

/// Bytes of the shares of changed rows that a task keeps, unless those of kFewestKeys keys are more.
constexpr std::size_t kShareBytes = 1 << 20;

/// Bytes of the shares of changed rows that each thread of a pass keeps. With more, patches take a walk
/// of their own.
constexpr std::size_t kTapBytes = 8 << 20;

/// The keys of all lookups to the bins of a group, and the places of their answers.
struct Answers {
  const TableExtent& extent;
  std::span<const std::uint64_t> ages;
  std::span<const dpf::Keys* const> keys;
  std::size_t bytes;  ///< of an answer
  std::uint8_t* data;
};

/// A bin, and the keys to it in the order of lookups.
struct BinKeys {
  std::size_t group;
  std::uint64_t bin;

  std::size_t count(const Answers& all) const {
    return all.ages.size() * all.extent.bins().groups()[group].keys;
  }
  std::uint64_t age(const Answers& all, std::size_t i) const {
    return all.ages[i / all.extent.bins().groups()[group].keys];
  }
  /// Returns the number, among the keys of the group, of the i-th key to the bin.
  std::size_t key(const Answers& all, std::size_t i) const {
    const BinGroup& own = all.extent.bins().groups()[group];
    return (i / own.keys * own.count + bin) * own.keys + i % own.keys;
  }
  std::uint8_t* answer(const Answers& all, std::size_t i) const {
    const Bins& bins = all.extent.bins();
    const std::uint64_t keys = bins.groups()[group].keys;
    const std::uint64_t slot = bins.first_slot(group) + bin * keys + i % keys;
    return all.data + (i / keys * bins.slots() + slot) * all.bytes;
  }
};

/// Some keys to a bin.
struct Task {
  BinKeys to;
  std::size_t first, count;
};

/// Lists the ages of the keys of a task.
std::vector<std::uint64_t> ages_of(const Task& task, const Answers& all) {
  std::vector<std::uint64_t> ages(task.count);
  for (std::size_t i = 0; i < task.count; ++i) ages[i] = task.to.age(all, task.first + i);
  return ages;
}

/// Lists the leaves that have a changed row; they increase.
std::vector<std::uint64_t> leaves_of(const BinPatches& patches, unsigned leaf_bits) {
  std::vector<std::uint64_t> all, own, both;
  for (const BinPatches::Own& patch : patches.all()) {
    own.clear();
    for (const RowPlace& at : patch.rows()) {
      if (own.empty() || own.back() != at.row >> leaf_bits) own.push_back(at.row >> leaf_bits);
    }
    both.clear();
    std::set_union(all.begin(), all.end(), own.begin(), own.end(), std::back_inserter(both));
    std::swap(all, both);
  }
  return all;
}

/// Takes the shares of changed rows from walks to their leaves.
template <class Taken>
void take_from_walks(const Task& task, const Answers& all, const BinPatches& patches, Tier tier,
                     Taken& taken) {
  const dpf::Keys& keys = *all.keys[task.to.group];
  const unsigned leaf_bits = dpf::leaf_element_bits(keys.shape().output);
  const std::vector<std::uint64_t> leaves = leaves_of(patches, leaf_bits);
  const std::size_t together = std::min(
      leaves.size(), std::max<std::size_t>(1, kLeafBytes / task.count / sizeof(dpf::Leaf)));
  Buffer<dpf::Leaf> shares(task.count * together);
  std::memset(shares.data(), 0, shares.size() * sizeof(dpf::Leaf));
  const dpf::LeafShares leaf_shares(keys, tier);
  ggm::Leaves walk(keys.shape().depth(), keys.shape().radix_bits(), together);
  for (std::size_t first = 0; first < leaves.size(); first += together) {
    const std::span<const std::uint64_t> own =
        std::span(leaves).subspan(first, std::min(together, leaves.size() - first));
    walk.choose(own);
    for (std::size_t i = 0; i < task.count; ++i) {
      if (task.to.age(all, task.first + i) == 0) continue;
      const std::size_t key = task.to.key(all, task.first + i);
      leaf_shares.write(key, 1, walk.nodes(keys.forest(key, 1, tier)), own.size(),
                        shares[i * together].data());
    }
    for (std::size_t i = 0; i < own.size(); ++i) {
      taken.take_shares(reinterpret_cast<const std::uint8_t*>(&shares[i]),
                        together * sizeof(dpf::Leaf), own[i] << leaf_bits,
                        (own[i] + 1) << leaf_bits);
    }
  }
}

/// Adds the changes of a bin to the answers of a task, whose shares begin with key `first` of `taken`.
template <class Taken, class Sums>
void add_taken(const Task& task, const Answers& all, const BinPatches& patches, const Taken& taken,
               std::size_t first, Tier tier) {
  const std::size_t lanes = patches.all()[0].patch->lanes();
  const std::size_t lane_bytes = patches.all()[0].patch->lane_bytes();
  Sums sums({kTileRows, lane_bytes, all.extent.layout()}, all.extent.output(), lanes, task.count,
            tier);
  for (std::size_t i = 0; i < patches.all().size(); ++i) {
    const BinPatches::Own& own = patches.all()[i];
    for (const Patch::Section& section : own.patch->sections(*own.bin)) {
      taken.add(i, section, first, sums);
    }
  }
  Buffer<std::uint8_t> totals(checked_product(task.count, lanes * lane_bytes));
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    sums.read(lane, [&](std::size_t i) { return &totals[(i * lanes + lane) * lane_bytes]; });
  }
  for (std::size_t i = 0; i < task.count; ++i) {
    std::uint8_t* answer = task.to.answer(all, task.first + i);
    dpf::combine(all.extent.output(), answer, &totals[i * lanes * lane_bytes], all.bytes, answer);
  }
}

/// Adds the changes of a bin to the answers of some keys, from walks of their own.
template <class Taken, class Sums>
void add_changes(const Task& task, std::span<const Patch* const> patches, const Answers& all,
                 Tier tier) {
  const std::vector<std::uint64_t> ages = ages_of(task, all);
  const BinPatches own(patches.first(std::ranges::max(ages)), task.to.group, task.to.bin);
  if (own.all().empty()) return;
  Taken taken(own, ages, all.extent.output(), tier);
  take_from_walks(task, all, own, tier, taken);
  add_taken<Taken, Sums>(task, all, own, taken, 0, tier);
}

/// The changes of a table of one bin, with shares from the passes over it.
template <class Taken, class Sums>
class PassChanges final : public ShareTaps {
 public:
  PassChanges(std::span<const Patch* const> patches, const Answers& all, ThreadPool& pool,
              Tier tier)
      : patches_(patches, 0, 0), all_(all), pool_(pool), tier_(tier), taken_(pool.threads()) {}

  void begin(std::size_t first, std::size_t count) override {
    task_ = {{0, 0}, first, count};
    ages_ = ages_of(task_, all_);
    needed_ = !patches_.all().empty() && std::ranges::max(ages_) > 0;
  }

  ShareTap* tap(unsigned thread) override {
    if (!needed_) return nullptr;
    if (taken_[thread] == nullptr) {
      taken_[thread] = std::make_unique<Taken>(patches_, ages_, all_.extent.output(), tier_);
    }
    return taken_[thread].get();
  }

  void end() override {
    if (!needed_) return;
    std::erase(taken_, nullptr);
    for (std::size_t i = 1; i < taken_.size(); ++i) taken_[0]->merge(*taken_[i]);
    const std::size_t each = ceil_div(task_.count, pool_.threads() * kFewestKeys) * kFewestKeys;
    pool_.run(ceil_div(task_.count, each), [&](std::size_t i, unsigned) {
      const std::size_t first = i * each;
      const Task own = {task_.to, task_.first + first, std::min(each, task_.count - first)};
      add_taken<Taken, Sums>(own, all_, patches_, *taken_[0], first, tier_);
    });
    taken_.clear();
    taken_.resize(pool_.threads());
  }

 private:
  BinPatches patches_;
  const Answers& all_;
  ThreadPool& pool_;
  Tier tier_;
  Task task_ = {};
  bool needed_ = false;
  std::vector<std::uint64_t> ages_;
  std::vector<std::unique_ptr<Taken>> taken_;  // of each thread
};

/// Returns the keys of a task for a bin, of which the shares of one take so many bytes.
std::size_t keys_together(std::size_t keys, std::size_t share_bytes, unsigned threads) {
  const std::size_t fit = kShareBytes / std::max<std::size_t>(1, share_bytes);
  const std::size_t even = ceil_div(keys, threads * kFewestKeys) * kFewestKeys;
  return std::clamp(std::min(fit / kFewestKeys * kFewestKeys, even), kFewestKeys, kMostKeys);
}

std::vector<Task> divide(std::span<const Patch* const> patches, const Answers& all,
                         unsigned threads) {
  std::vector<Task> tasks;
  for (std::size_t group = 0; group < all.keys.size(); ++group) {
    for (std::uint64_t bin = 0; bin < all.extent.bins().groups()[group].count; ++bin) {
      const BinKeys to = {group, bin};
      const BinPatches own(patches, group, bin);
      if (own.all().empty()) continue;
      const std::size_t share_bytes =
          ceil_div(own.places() * dpf::element_bits(all.extent.output()), 8);
      const std::size_t keys = to.count(all), each = keys_together(keys, share_bytes, threads);
      for (std::size_t first = 0; first < keys; first += each) {
        tasks.push_back({to, first, std::min(each, keys - first)});
      }
    }
  }
  return tasks;
}

void check(std::span<const Patch* const> patches, std::span<const std::uint64_t> ages,
           std::size_t lookups) {
  for (const Patch* patch : patches) {
    if (patch->extent() == patches[0]->extent() &&
        patch->lane_bytes() == patches[0]->lane_bytes()) {
      continue;
    }
    throw Error(ErrorKind::argument, "patches: found those of different tables, expected one");
  }
  if (ages.size() != lookups) {
    throw Error(ErrorKind::argument, "ages: found " + std::to_string(ages.size()) + ", expected " +
                                         std::to_string(lookups) + ", one for each lookup");
  }
  for (const std::uint64_t age : ages) {
    if (age <= patches.size()) continue;
    throw Error(ErrorKind::argument, "ages: found " + std::to_string(age) + ", expected at most " +
                                         std::to_string(patches.size()) +
                                         ", the number of patches");
  }
}

/// Tests if the shares of changed rows can be taken out of a pass.
template <class Taken>
bool fit_pass(std::span<const Patch* const> patches, const Answers& all) {
  if (!all.extent.bins().one()) return false;
  const BinPatches own(patches, 0, 0);
  const std::size_t keys = std::min(all.keys[0]->size(), Plan::kKeysPerPass);
  return Taken::bytes(own.places(), keys, all.extent.output()) <= kTapBytes;
}

}  // namespace

void add_patches(std::span<const Patch* const> patches, std::span<const std::uint64_t> ages,
                 std::span<const dpf::Keys* const> keys, std::uint8_t* answers, ThreadPool& pool,
                 Tier tier) {
  if (patches.empty()) return;
  const TableExtent& extent = patches[0]->extent();
  check(patches, ages, count_lookups(extent, keys));
  if (ages.empty()) return;
  const Answers all = {extent, ages, keys, answer_bytes(extent.output(), extent.row_bytes()),
                       answers};
  const std::vector<Task> tasks = divide(patches, all, pool.threads());
  with_taken(extent.layout(), [&]<class Taken, class Sums>() {
    pool.run(tasks.size(), [&](std::size_t i, unsigned) {
      add_changes<Taken, Sums>(tasks[i], patches, all, tier);
    });
  });
}

void answer_versions(const Table& table, std::span<const Patch* const> patches,
                     std::span<const std::uint64_t> ages, std::span<const dpf::Keys* const> keys,
                     std::uint8_t* answers, ThreadPool& pool, Tier tier) {
  if (patches.empty()) return answer(table, keys, answers, pool, tier);
  const TableExtent& extent = table.extent;
  check(patches, ages, count_lookups(extent, keys));
  const Answers all = {extent, ages, keys, answer_bytes(extent.output(), extent.row_bytes()),
                       answers};
  with_taken(extent.layout(), [&]<class Taken, class Sums>() {
    if (fit_pass<Taken>(patches, all)) {
      PassChanges<Taken, Sums> changes(patches, all, pool, tier);
      answer(table, keys, answers, pool, tier, &changes);
    } else {
      answer(table, keys, answers, pool, tier);
      add_patches(patches, ages, keys, answers, pool, tier);
    }
  });
}

}  // namespace nescio::pir
