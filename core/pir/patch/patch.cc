#include "pir/patch/patch.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/math.h"
#include "dpf/shares.h"
#include "pir/answer.h"
#include "pir/slicer.h"

namespace nescio::pir {
namespace {

void check_indices(const TableExtent& extent, std::span<const std::uint64_t> indices) {
  for (std::size_t i = 1; i < indices.size(); ++i) {
    if (indices[i - 1] < indices[i]) continue;
    throw Error(ErrorKind::argument, "changed rows: found row " + std::to_string(indices[i]) +
                                         " after row " + std::to_string(indices[i - 1]) +
                                         ", expected increasing numbers");
  }
  if (indices.empty() || indices.back() < extent.rows()) return;
  throw Error(ErrorKind::index, "row " + std::to_string(indices.back()) +
                                    " is outside the table of " + std::to_string(extent.rows()) +
                                    " rows");
}

void check_lanes(const TableExtent& extent, std::size_t bytes) {
  const std::size_t element = answer_bytes(extent.output(), 1);
  const std::size_t width = answer_bytes(extent.output(), extent.row_bytes());
  const std::size_t fewest = ceil_div(width, Patch::kMostLanes);
  if (bytes >= fewest && bytes <= width && bytes % element == 0) return;
  throw Error(ErrorKind::argument, "lane: found " + std::to_string(bytes) + " bytes, expected " +
                                       std::to_string(fewest) + " to " + std::to_string(width) +
                                       ", in multiples of " + std::to_string(element));
}

/// differences = a - b, for some bytes of a row.
void subtract(dpf::Output output, const std::uint8_t* a, const std::uint8_t* b, std::size_t bytes,
              std::uint8_t* differences) {
  if (output == dpf::Output::bit) {
    for (std::size_t i = 0; i < bytes; ++i) differences[i] = a[i] ^ b[i];
    return;
  }
  dpf::with_word(output, [&]<class W>(W) {
    for (std::size_t i = 0; i < bytes; i += sizeof(W)) {
      W x = 0, y = 0;
      const std::size_t own = std::min(sizeof(W), bytes - i);
      std::memcpy(&x, a + i, own);
      std::memcpy(&y, b + i, own);
      x = static_cast<W>(x - y);
      std::memcpy(differences + i, &x, sizeof(W));
    }
  });
}

/// The rows before and after an update.
struct Rows {
  const TableExtent& extent;
  const std::uint8_t* before;
  const std::uint8_t* after;
  std::size_t lane_bytes;

  /// Returns the bytes of a lane, of which the last one may be shorter.
  std::size_t bytes(std::size_t lane) const {
    return std::min(lane_bytes, extent.row_bytes() - lane * lane_bytes);
  }
  bool differ(std::size_t i, std::size_t lane) const {
    const std::size_t at = i * extent.row_bytes() + lane * lane_bytes;
    return std::memcmp(before + at, after + at, bytes(lane)) != 0;
  }
  void subtract(std::size_t i, std::size_t lane, std::uint8_t* differences) const {
    const std::size_t at = i * extent.row_bytes() + lane * lane_bytes;
    pir::subtract(extent.output(), before + at, after + at, bytes(lane), differences);
  }
};

/// Writes the differences of a lane of some rows, in the layout of a table of them.
void lay_out(const Rows& rows, std::size_t lane, std::span<const std::size_t> changed,
             const Extent& extent, Tier tier, std::uint8_t* table) {
  const bool sliced = extent.layout == Layout::sliced;
  Buffer<std::uint8_t> own(sliced ? kTileRows * extent.row_bytes : 0);
  for (std::size_t first = 0; first < changed.size(); first += kTileRows) {
    const std::size_t count = std::min(kTileRows, changed.size() - first);
    std::uint8_t* place = sliced ? own.data() : table + first * extent.row_bytes;
    std::memset(place, 0, count * extent.row_bytes);
    for (std::size_t i = 0; i < count; ++i) {
      rows.subtract(changed[first + i], lane, place + i * extent.row_bytes);
    }
    if (sliced) {
      NESCIO_PICK(tier, kSlicer)
          .slice(own.data(), count, extent.row_bytes, extent.lines(first),
                 table + extent.offset(first));
    }
  }
}

/// Some rows of a bin, and their lanes that differ.
struct Lanes {
  std::vector<RowPlace> rows;               // of the bin
  std::vector<std::size_t> numbers, lanes;  // of each of them: the number among all rows, the lane
  std::vector<std::size_t> counts;          // of each lane
  std::vector<std::size_t> by_place;        // numbers again; those between sections have no meaning

  /// Lists the lanes of rows begin..end-1, of which the first is row `row` of its bin.
  void list(const Rows& all, std::span<const std::uint64_t> indices, std::size_t begin,
            std::size_t end, std::uint64_t row) {
    rows.clear();
    numbers.clear();
    lanes.clear();
    std::ranges::fill(counts, 0);
    for (std::size_t i = begin; i < end; ++i) {
      for (std::size_t lane = 0; lane < counts.size(); ++lane) {
        if (!all.differ(i, lane)) continue;
        rows.push_back({row + (indices[i] - indices[begin]), 0});
        numbers.push_back(i);
        lanes.push_back(lane);
        ++counts[lane];
      }
    }
  }

  /// Gives each lane its places from firsts[lane] on, of `places` in all.
  void place(std::vector<std::size_t> firsts, std::size_t places) {
    by_place.resize(places);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i].place = firsts[lanes[i]]++;
      by_place[rows[i].place] = numbers[i];
    }
  }
};

}  // namespace

Patch::Patch(TableExtent extent, std::span<const std::uint64_t> indices,
             const std::uint8_t* old_rows, const std::uint8_t* new_rows, std::size_t lane_bytes,
             Tier tier)
    : extent_(std::move(extent)), size_(indices.size()), lane_bytes_(lane_bytes) {
  check_indices(extent_, indices);
  check_lanes(extent_, lane_bytes);
  const Rows rows = {extent_, old_rows, new_rows, lane_bytes};
  std::vector<std::size_t> by_place;  // the numbers of rows, bin by bin
  Lanes own;
  own.counts.resize(lanes());
  std::size_t bytes = 0;
  for (std::size_t begin = 0, end = 0; begin < size_; begin = end) {
    const Bins::Place at = extent_.bins().place(indices[begin]);
    const std::uint64_t bin_rows = extent_.bins().groups()[at.group].rows;
    while (end < size_ && indices[end] - indices[begin] < bin_rows - at.row) ++end;
    own.list(rows, indices, begin, end, at.row);
    if (own.rows.empty()) continue;
    bins_.push_back({at.group, at.bin, sections_.size(), 0, rows_.size(), own.rows.size(), 0});
    std::vector<std::size_t> firsts = add_sections(own.counts, &bytes);
    own.place(std::move(firsts), bins_.back().places);
    rows_.insert(rows_.end(), own.rows.begin(), own.rows.end());
    by_place.insert(by_place.end(), own.by_place.begin(), own.by_place.end());
  }
  differences_ = Buffer<std::uint8_t>(bytes);
  std::size_t first = 0;
  for (const ChangedBin& bin : bins_) {
    for (const Section& section : sections(bin)) {
      lay_out(rows, section.lane, std::span(by_place).subspan(first + section.first, section.count),
              this->extent(section), tier, &differences_[section.offset]);
    }
    first += bin.places;
  }
  bins_.shrink_to_fit();
  rows_.shrink_to_fit();
  sections_.shrink_to_fit();
}

std::vector<std::size_t> Patch::add_sections(std::span<const std::size_t> counts,
                                             std::size_t* bytes) {
  ChangedBin& bin = bins_.back();
  std::vector<std::size_t> firsts;
  for (std::size_t lane = 0; lane < counts.size(); ++lane) {
    firsts.push_back(bin.places);
    if (counts[lane] == 0) continue;
    sections_.push_back({lane, bin.places, counts[lane], *bytes});
    *bytes += extent(sections_.back()).bytes();
    bin.places += ceil_div(counts[lane], kGroupRows) * kGroupRows;
    ++bin.sections;
  }
  return firsts;
}

std::size_t Patch::lanes() const { return ceil_div(extent_.row_bytes(), lane_bytes_); }

std::size_t Patch::bytes() const {
  return differences_.size() + rows_.size() * sizeof(rows_[0]) +
         sections_.size() * sizeof(sections_[0]) + bins_.size() * sizeof(bins_[0]);
}

const Patch::ChangedBin* Patch::find(std::size_t group, std::uint64_t bin) const {
  const auto found = std::partition_point(bins_.begin(), bins_.end(), [&](const ChangedBin& own) {
    return std::pair(own.group, own.bin) < std::pair(group, bin);
  });
  return found != bins_.end() && found->group == group && found->bin == bin ? &*found : nullptr;
}

}  // namespace nescio::pir
