#pragma once

// The difference between two versions of a table: the rows that an update changed, old minus new in the
// output group. See patched.h for what is done with it.
//
// An update of a record changes a few bytes of it, and one of a hash table 32 of 512. A row is therefore
// cut into lanes of as many bytes, and a patch has those lanes of rows that differ. The lanes of one
// place in the rows of one bin are a section, which is laid out like a small table. The shares of a bin's
// sections are stored one after the other; `changed` tells, in the order of rows, where each one goes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "pir/layout.h"
#include "pir/product/bit_product.h"

namespace nescio::pir {

/// The rows that an update of a table changed, and their differences.
class Patch {
 public:
  /// Some bytes of rows of a bin.
  struct Section {
    std::size_t lane;    ///< the bytes from lane * lane_bytes() on
    std::size_t first;   ///< the place of its first share among those of the bin
    std::size_t count;   ///< rows that differ there
    std::size_t offset;  ///< of its differences
  };

  /// A bin in which rows differ.
  struct ChangedBin {
    std::size_t group;
    std::uint64_t bin;                    ///< of the group
    std::size_t first_section, sections;  ///< in the order of lanes
    std::size_t first_row, rows;          ///< lanes that differ
    std::size_t places;                   ///< of shares
  };

  /// Subtracts new rows from old ones, of extent.row_bytes() each; both are those of the rows with the
  /// numbers `indices`, which increase. Lanes of `lane_bytes` are a choice of memory: the answers are the
  /// same. Throws Error(argument) if the numbers do not increase, or unless lanes are whole elements of
  /// the output and at most kMostLanes; Error(index) for a row outside the table.
  Patch(TableExtent extent, std::span<const std::uint64_t> indices, const std::uint8_t* old_rows,
        const std::uint8_t* new_rows, std::size_t lane_bytes, Tier tier);

  static constexpr std::size_t kMostLanes = 64;

  const TableExtent& extent() const { return extent_; }
  std::size_t size() const { return size_; }
  std::size_t lane_bytes() const { return lane_bytes_; }
  std::size_t lanes() const;
  std::size_t bytes() const;

  /// Returns a bin in which rows differ, or null.
  const ChangedBin* find(std::size_t group, std::uint64_t bin) const;
  /// Returns the sections of a bin, in the order of lanes. Each begins at a multiple of 8 places.
  std::span<const Section> sections(const ChangedBin& bin) const {
    return std::span(sections_).subspan(bin.first_section, bin.sections);
  }
  /// Returns the row in the bin and the place of each lane that differs, in the order of rows.
  std::span<const RowPlace> rows(const ChangedBin& bin) const {
    return std::span(rows_).subspan(bin.first_row, bin.rows);
  }
  /// Returns the differences of a section, in the layout of its rows.
  const std::uint8_t* differences(const Section& section) const {
    return &differences_[section.offset];
  }
  Extent extent(const Section& section) const {
    return {section.count, lane_bytes_, extent_.layout()};
  }

 private:
  /// Adds the sections of the last bin, whose lanes have so many rows; returns the lanes' first places.
  std::vector<std::size_t> add_sections(std::span<const std::size_t> counts, std::size_t* bytes);

  TableExtent extent_;
  std::size_t size_, lane_bytes_;
  std::vector<ChangedBin> bins_;
  std::vector<Section> sections_;
  std::vector<RowPlace> rows_;
  Buffer<std::uint8_t> differences_;
};

}  // namespace nescio::pir
