#include "pir/answer.h"

#include <string>

#include "base/error.h"
#include "base/math.h"
#include "pir/pass.h"

namespace nescio::pir {
namespace {

/// Bins per thread from which threads only take whole bins: the last ones cost little.
constexpr std::size_t kManyBins = 8;

/// Threads take bins while each gets one; they divide the rows of the rest.
void answer_group(const BinQueries& queries, ThreadPool& pool, Tier tier, ShareTaps* taps) {
  const std::size_t threads = pool.threads(), count = queries.bins;
  const bool many = count >= kManyBins * threads;
  const std::size_t whole = count == 1 ? 0 : many ? count : count - count % threads;
  if (whole > 0) answer_bins(queries, whole, pool, tier);
  for (std::size_t bin = whole; bin < count; ++bin) answer_bin(queries, bin, pool, tier, taps);
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
            ThreadPool& pool, Tier tier, ShareTaps* taps) {
  const std::size_t lookups = count_lookups(table.extent, keys);
  if (lookups == 0) return;
  const Bins& bins = table.extent.bins();
  const std::size_t bytes = answer_bytes(table.extent.output(), table.extent.row_bytes());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const BinGroup& group = bins.groups()[i];
    answer_group({table.data + table.extent.offset(i, 0), table.extent.extent(i),
                  table.extent.window().first, table.extent.bin_bytes(i), group.count, *keys[i],
                  group.keys, out + bins.first_slot(i) * bytes, bins.slots() * bytes, bytes},
                 pool, tier, bins.one() ? taps : nullptr);
  }
}

}  // namespace nescio::pir
