#pragma once

// The difference between two versions of a table: the rows that an update changed, old minus new in the
// output group. See patched.h for what is done with it.
//
// An update of a record changes a few bytes of it, and one of a hash table 32 of 512. A row is therefore
// cut into lanes of as many bytes, and a patch has those lanes of rows that differ. The lanes of one
// place in the rows of one bin are a section, which is laid out like a small table.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "pir/layout.h"

namespace nescio::pir {

/// The rows that an update of a table changed, and their differences.
class Patch {
 public:
  /// Some bytes of rows of a bin.
  struct Section {
    std::size_t group;
    std::uint64_t bin;   ///< of the group
    std::size_t lane;    ///< the bytes from lane * lane_bytes() on
    std::size_t first;   ///< of its rows in rows()
    std::size_t count;   ///< rows that differ there
    std::size_t offset;  ///< of its differences
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

  /// Returns the sections of a bin, in the order of lanes.
  std::span<const Section> sections(std::size_t group, std::uint64_t bin) const;
  /// Returns the numbers, in the bin, of the rows of a section; they increase.
  std::span<const std::uint64_t> rows(const Section& section) const {
    return std::span(rows_).subspan(section.first, section.count);
  }
  /// Returns the differences of a section, in the layout of its rows.
  const std::uint8_t* differences(const Section& section) const {
    return &differences_[section.offset];
  }
  Extent extent(const Section& section) const {
    return {section.count, lane_bytes_, extent_.layout()};
  }

 private:
  TableExtent extent_;
  std::size_t size_, lane_bytes_;
  std::vector<Section> sections_;
  std::vector<std::uint64_t> rows_;
  Buffer<std::uint8_t> differences_;
};

}  // namespace nescio::pir
