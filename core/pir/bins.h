#pragma once

// The bins of a table. A lookup sends a fixed number of keys to each bin, over the bin's rows alone, so
// what it costs and what it shows do not depend on which rows it wants. A table that is not cut is one
// bin, with one key.
//
// Rows are numbered group by group, bin by bin, and within a bin by their places. So are the keys of a
// lookup: group, bin, key. Tiles (pir/sliced.h) do not cross bins: the last tile of each may be shorter.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace nescio::pir {

/// Bins of one size.
struct BinGroup {
  std::uint64_t count;  ///< bins of this group
  std::uint64_t rows;   ///< rows of each
  std::uint64_t keys;   ///< keys that a lookup sends to each

  friend bool operator==(const BinGroup&, const BinGroup&) = default;
};

/// Some rows of each of some bins of a group.
struct BinPart {
  std::size_t group;
  std::uint64_t first_bin, bins;
  std::uint64_t first_row, rows;  ///< of each bin
};

/// The places of rows, tiles and keys among bins.
class Bins {
 public:
  /// Throws Error(argument) without groups, for a group with a number that is zero, and for more rows
  /// or keys than kMaxRows.
  explicit Bins(std::vector<BinGroup> groups);

  /// Maximum rows, those that fill the last tiles included; and maximum keys of a lookup.
  static constexpr std::uint64_t kMaxRows = std::uint64_t{1} << 62;

  std::span<const BinGroup> groups() const { return groups_; }
  std::uint64_t rows() const { return ends_.back().row; }
  std::uint64_t tiles() const { return ends_.back().tile; }
  std::uint64_t slots() const { return ends_.back().slot; }  ///< keys of a lookup
  /// Returns the first key of a group within a lookup.
  std::uint64_t first_slot(std::size_t group) const { return before(group).slot; }
  /// Returns true for a table that is not cut.
  bool one() const { return groups_.size() == 1 && groups_[0].count == 1; }

  struct Place {
    std::size_t group;
    std::uint64_t bin;  ///< of the group
    std::uint64_t row;  ///< of the bin
  };
  /// Returns the place of a row below rows().
  Place place(std::uint64_t row) const;
  /// Returns the place of the first row of a tile below tiles().
  Place tile(std::uint64_t number) const;
  /// Returns the number of the row at a place.
  std::uint64_t row(const Place& at) const;
  /// Returns the number of the tile that holds a place.
  std::uint64_t tile_of(const Place& at) const;
  /// Returns rows first..first+count-1, which must be in the table, as parts in their order: the whole
  /// bins of each group together, and what is left of a bin at either end.
  std::vector<BinPart> parts(std::uint64_t first, std::uint64_t count) const;

  friend bool operator==(const Bins& a, const Bins& b) { return a.groups_ == b.groups_; }

 private:
  struct Sums {
    std::uint64_t row, tile, slot;
  };
  Sums before(std::size_t group) const { return group == 0 ? Sums{} : ends_[group - 1]; }

  std::vector<BinGroup> groups_;
  std::vector<Sums> ends_;  // of each group
};

}  // namespace nescio::pir
