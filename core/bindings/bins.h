#pragma once

// Bins and their keys as Python passes them, for the tables of every module.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "dpf/key.h"
#include "pir/layout.h"

namespace nescio::bindings {

/// For each group of bins: their number, the rows of each, and the keys of a lookup to each.
using Groups = std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>>;

inline pir::Bins bins_of(const Groups& groups) {
  std::vector<pir::BinGroup> bins;
  for (const auto& [count, rows, keys] : groups) bins.push_back({count, rows, keys});
  return pir::Bins(std::move(bins));
}

/// The first row and the number of rows that are in memory; all of them without it.
using Window = std::optional<std::tuple<std::uint64_t, std::uint64_t>>;

inline pir::TableExtent extent_of(const Groups& groups, std::size_t row_bytes,
                                  const std::string& output, const Window& window = {}) {
  std::optional<pir::RowRange> range;
  if (window) range = pir::RowRange{std::get<0>(*window), std::get<1>(*window)};
  return {bins_of(groups), row_bytes, dpf::parse_output(output), range};
}

/// The keys to each group of bins.
using GroupKeys = std::vector<const dpf::Keys*>;

/// Throws Error(argument) if a group has None in place of keys.
inline void check_present(const GroupKeys& keys) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] != nullptr) continue;
    throw Error(ErrorKind::argument,
                "keys of group " + std::to_string(i) + ": found None, expected Keys");
  }
}

}  // namespace nescio::bindings
