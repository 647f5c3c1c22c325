#include "pir/answer.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/buffer.h"
#include "base/error.h"
#include "base/math.h"
#include "pir/pass.h"

namespace nescio::pir {
namespace {

/// Bins per thread from which threads only take whole bins: the last ones cost little.
constexpr std::size_t kManyBins = 8;

/// The bins of a group, their keys, and the places of the answers.
struct Group {
  BinRun bins;
  std::size_t keys;  ///< that a lookup sends to each bin
  const dpf::Keys& all;
  std::size_t lookups;
  std::uint8_t* out;          ///< of the group's first key of the first lookup
  std::size_t lookup_bytes;   ///< from a lookup to the next in `out`
  std::size_t answer_length;  ///< bytes of an answer

  /// Returns bins first..first+count-1.
  BinRun run(std::size_t first, std::size_t count) const {
    return {bins.data + first * bins.bytes, bins.extent, bins.bytes, count};
  }
  /// Returns the keys of these bins, bin by bin.
  dpf::Keys keys_of(std::size_t first, std::size_t count) const {
    return all.take_columns(bins.count, keys, first, count);
  }
  /// Moves the answers of bins, which are bin by bin, to their places.
  void place(const std::uint8_t* answers, std::size_t first, std::size_t count) const {
    const std::size_t bytes = keys * answer_length;
    for (std::size_t bin = first; bin < first + count; ++bin) {
      for (std::size_t lookup = 0; lookup < lookups; ++lookup, answers += bytes) {
        std::memcpy(out + lookup * lookup_bytes + bin * bytes, answers, bytes);
      }
    }
  }
};

/// Answers bins first..first+count-1 by one thread.
void answer_together(const Group& group, std::size_t first, std::size_t count, Tier tier) {
  const dpf::Keys own = group.keys_of(first, count);
  Buffer<std::uint8_t> answers(own.size() * group.answer_length);
  answer_bins(group.run(first, count), own, answers.data(), tier);
  group.place(answers.data(), first, count);
}

/// Answers one bin by all threads.
void answer_alone(const Group& group, std::size_t bin, ThreadPool& pool, Tier tier) {
  const dpf::Keys own = group.keys_of(bin, 1);
  Buffer<std::uint8_t> answers(own.size() * group.answer_length);
  answer_bin(group.run(bin, 1), own, answers.data(), pool, tier);
  group.place(answers.data(), bin, 1);
}

/// Threads take bins while each gets one; they divide the rows of the rest.
void answer_group(const Group& group, ThreadPool& pool, Tier tier) {
  const std::size_t threads = pool.threads(), count = group.bins.count;
  const std::size_t by_bins = count >= kManyBins * threads ? count : count - count % threads;
  const std::size_t most =
      bins_per_pass(group.bins.extent, group.all.shape(), group.lookups * group.keys, tier);
  const std::size_t step = std::max<std::size_t>(1, std::min(most, by_bins / threads));
  pool.run(ceil_div(by_bins, step), [&](std::size_t task, unsigned) {
    const std::size_t first = task * step;
    answer_together(group, first, std::min(step, by_bins - first), tier);
  });
  for (std::size_t bin = by_bins; bin < count; ++bin) answer_alone(group, bin, pool, tier);
}

void check_shape(const TableExtent& extent, std::size_t group, const dpf::Keys& keys) {
  dpf::Shape expected = keys.shape();
  expected.domain = extent.bins().groups()[group].rows;
  expected.output = extent.output();
  if (keys.size() != 0 && keys.shape() != expected) {
    throw Error("a key does not match the table", keys.shape().describe(), expected.describe());
  }
}

}  // namespace

std::size_t answer_bytes(dpf::Output output, std::size_t row_bytes) {
  const std::size_t element = (dpf::element_bits(output) + 7) / 8;
  return ceil_div(row_bytes, element) * element;
}

std::size_t count_lookups(const TableExtent& extent, std::span<const dpf::Keys* const> keys) {
  const auto groups = extent.bins().groups();
  if (keys.size() != groups.size()) {
    throw Error(ErrorKind::argument, "keys: found " + std::to_string(keys.size()) +
                                         " groups, expected " + std::to_string(groups.size()) +
                                         ", one for each group of bins");
  }
  std::size_t lookups = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    check_shape(extent, i, *keys[i]);
    const std::uint64_t each = groups[i].count * groups[i].keys;
    if (i == 0) lookups = keys[i]->size() / each;
    if (keys[i]->size() != lookups * each) {
      throw Error(ErrorKind::argument, "keys of group " + std::to_string(i) + ": found " +
                                           std::to_string(keys[i]->size()) + ", expected " +
                                           std::to_string(each) + " for each of " +
                                           std::to_string(lookups) + " lookups");
    }
  }
  return lookups;
}

void answer(const Table& table, std::span<const dpf::Keys* const> keys, std::uint8_t* out,
            ThreadPool& pool, Tier tier) {
  const std::size_t lookups = count_lookups(table.extent, keys);
  if (lookups == 0) return;
  const Bins& bins = table.extent.bins();
  const std::size_t bytes = answer_bytes(table.extent.output(), table.extent.row_bytes());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const BinGroup& group = bins.groups()[i];
    const BinRun run = {table.data + table.extent.offset(i, 0), table.extent.extent(i),
                        table.extent.bin_bytes(i), group.count};
    if (bins.one()) return answer_bin(run, *keys[i], out, pool, tier);
    answer_group({run, group.keys, *keys[i], lookups, out + bins.first_slot(i) * bytes,
                  bins.slots() * bytes, bytes},
                 pool, tier);
  }
}

}  // namespace nescio::pir
