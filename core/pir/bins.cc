#include "pir/bins.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/math.h"
#include "pir/sliced.h"

namespace nescio::pir {
namespace {

std::uint64_t tiles_of(const BinGroup& group) { return ceil_div(group.rows, kTileRows); }

std::string describe(const BinGroup& group) {
  return std::to_string(group.count) + " bins of " + std::to_string(group.rows) + " rows, " +
         std::to_string(group.keys) + " keys each";
}

/// Adds count * each to a sum. Throws Error(argument) above `most`.
void add(std::uint64_t& sum, std::uint64_t count, std::uint64_t each, std::uint64_t most,
         const BinGroup& group) {
  std::uint64_t product = 0;
  if (!__builtin_mul_overflow(count, each, &product) && product <= most - sum) {
    sum += product;
    return;
  }
  throw Error(ErrorKind::argument, "invalid table size: with " + describe(group) +
                                       ", the bins have more than 2^62 rows or keys");
}

}  // namespace

Bins::Bins(std::vector<BinGroup> groups) : groups_(std::move(groups)) {
  if (groups_.empty()) {
    throw Error(ErrorKind::argument, "bins: found no group of bins, expected at least one");
  }
  Sums sums{};
  for (const BinGroup& group : groups_) {
    if (group.count == 0 || group.rows == 0 || group.keys == 0) {
      throw Error(ErrorKind::argument, "invalid table size: found " + describe(group) +
                                           ", expected at least one bin, row and key");
    }
    add(sums.row, group.count, group.rows, kMaxRows, group);
    add(sums.tile, group.count, tiles_of(group), kMaxRows / kTileRows, group);
    add(sums.slot, group.count, group.keys, kMaxRows, group);
    ends_.push_back(sums);
  }
}

Bins::Place Bins::place(std::uint64_t row) const {
  if (one()) return {0, 0, row};
  const auto end = std::upper_bound(ends_.begin(), ends_.end(), row,
                                    [](std::uint64_t r, const Sums& sums) { return r < sums.row; });
  const auto group = static_cast<std::size_t>(end - ends_.begin());
  const std::uint64_t within = row - before(group).row, rows = groups_[group].rows;
  return {group, within / rows, within % rows};
}

Bins::Place Bins::tile(std::uint64_t number) const {
  if (one()) return {0, 0, number * kTileRows};
  const auto end =
      std::upper_bound(ends_.begin(), ends_.end(), number,
                       [](std::uint64_t t, const Sums& sums) { return t < sums.tile; });
  const auto group = static_cast<std::size_t>(end - ends_.begin());
  const std::uint64_t within = number - before(group).tile, tiles = tiles_of(groups_[group]);
  return {group, within / tiles, within % tiles * kTileRows};
}

std::uint64_t Bins::row(const Place& at) const {
  return before(at.group).row + at.bin * groups_[at.group].rows + at.row;
}

std::vector<BinPart> Bins::parts(std::uint64_t first, std::uint64_t count) const {
  std::vector<BinPart> all;
  for (std::uint64_t end = first + count; first < end;) {
    const Place at = place(first);
    const std::uint64_t rows = groups_[at.group].rows, left = end - first;
    const std::uint64_t whole = std::min(left / rows, groups_[at.group].count - at.bin);
    if (at.row == 0 && whole > 0) {
      all.push_back({at.group, at.bin, whole, 0, rows});
      first += whole * rows;
    } else {
      all.push_back({at.group, at.bin, 1, at.row, std::min(left, rows - at.row)});
      first += all.back().rows;
    }
  }
  return all;
}

std::uint64_t Bins::tile_of(const Place& at) const {
  return before(at.group).tile + at.bin * tiles_of(groups_[at.group]) + at.row / kTileRows;
}

}  // namespace nescio::pir
