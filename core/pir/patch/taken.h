#pragma once

// The shares of changed rows, which are taken out of a pass or a walk over the rows of a bin, and their
// product with the differences of patches; for each layout.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "dpf/shares.h"
#include "pir/pass.h"
#include "pir/patch/patch.h"
#include "pir/sums.h"

namespace nescio::pir {

/// The patches that changed rows of a bin, as far as keys to it need them.
class BinPatches {
 public:
  /// A patch, the number of it, and the place of its first share among those of all patches.
  struct Own {
    const Patch* patch;
    const Patch::ChangedBin* bin;
    std::size_t number, first;

    std::span<const RowPlace> rows() const { return patch->rows(*bin); }
  };

  BinPatches(std::span<const Patch* const> patches, std::size_t group, std::uint64_t bin) {
    for (std::size_t i = 0; i < patches.size(); ++i) {
      const Patch::ChangedBin* own = patches[i]->find(group, bin);
      if (own == nullptr) continue;
      all_.push_back({patches[i], own, i, places_});
      places_ += own->places;
    }
  }

  std::span<const Own> all() const { return all_; }
  std::size_t places() const { return places_; }

 private:
  std::vector<Own> all_;
  std::size_t places_ = 0;
};

/// Finds the rows of patches that are in a range; ranges that follow each other take no search.
class RowCursors {
 public:
  explicit RowCursors(const BinPatches& patches) : next_(patches.all().size(), 0) {}

  /// Returns the rows begin..end-1 of patch i.
  std::span<const RowPlace> advance(const BinPatches& patches, std::size_t i, std::uint64_t begin,
                                    std::uint64_t end) {
    const std::span<const RowPlace> rows = patches.all()[i].rows();
    std::size_t first = next_[i];
    if ((first > 0 && rows[first - 1].row >= begin) ||
        (first < rows.size() && rows[first].row < begin)) {
      const auto before = [begin](const RowPlace& at) { return at.row < begin; };
      first = static_cast<std::size_t>(std::ranges::partition_point(rows, before) - rows.begin());
    }
    std::size_t last = first;
    while (last < rows.size() && rows[last].row < end) ++last;
    next_[i] = last;
    return rows.subspan(first, last - first);
  }

 private:
  std::vector<std::size_t> next_;
};

/// Shares of bits, with a byte for eight keys: see BitProduct::copy_shares.
class SlicedTaken final : public ShareTap {
 public:
  static std::size_t bytes(std::size_t places, std::size_t keys, dpf::Output) {
    return key_groups(keys) * (places + kTileRows);
  }

  /// For keys of some ages, which get the first patches.
  SlicedTaken(const BinPatches& patches, std::span<const std::uint64_t> ages, dpf::Output,
              Tier tier)
      : product_(bit_product(tier)),
        patches_(patches),
        cursors_(patches),
        keys_(ages.size()),
        groups_(key_groups(keys_)),
        stride_(patches.places() + kTileRows),
        masks_(patches.all().size() * groups_, 0),
        copies_(groups_ * stride_) {
    std::memset(copies_.data(), 0, copies_.size());
    for (std::size_t i = 0; i < patches.all().size(); ++i) {
      for (std::size_t q = 0; q < keys_; ++q) {
        const unsigned needed = patches.all()[i].number < ages[q];
        masks_[i * groups_ + q / kKeyGroup] |= static_cast<std::uint8_t>(needed << q % kKeyGroup);
      }
    }
  }

  void take(const std::uint8_t* scratch, std::size_t, std::uint64_t begin,
            std::uint64_t end) override {
    for (std::size_t i = 0; i < patches_.all().size(); ++i) {
      const std::span<const RowPlace> rows = cursors_.advance(patches_, i, begin, end);
      if (rows.empty()) continue;
      product_.copy_shares(scratch, keys_, rows, &masks_[i * groups_],
                           &copies_[patches_.all()[i].first], stride_);
    }
  }

  /// Takes shares that are not laid out, of a tile.
  void take_shares(const std::uint8_t* shares, std::size_t stride, std::uint64_t begin,
                   std::uint64_t end) {
    if (scratch_.size() == 0) scratch_ = Buffer<std::uint8_t>(product_.scratch_bytes(keys_));
    product_.lay_out(shares, stride, keys_, scratch_.data());
    take(scratch_.data(), 0, begin, end);
  }

  void merge(const SlicedTaken& other) {
    for (std::size_t i = 0; i < copies_.size(); ++i) copies_[i] |= other.copies_[i];
  }

  /// Adds the products of a section of patch i; `sums` are of keys from key `first` on, of a group.
  void add(std::size_t i, const Patch::Section& section, std::size_t first,
           SlicedSums& sums) const {
    const Patch& patch = *patches_.all()[i].patch;
    sums.add_copies(section.lane, Bin(patch.differences(section), patch.extent(section)),
                    &copies_[first / kKeyGroup * stride_ + patches_.all()[i].first + section.first],
                    stride_);
  }

 private:
  const BitProduct& product_;
  const BinPatches& patches_;
  RowCursors cursors_;
  std::size_t keys_, groups_, stride_;
  std::vector<std::uint8_t> masks_;  // of each patch
  Buffer<std::uint8_t> copies_;
  Buffer<std::uint8_t> scratch_;
};

/// Shares that are words.
class RowTaken final : public ShareTap {
 public:
  static std::size_t bytes(std::size_t places, std::size_t keys, dpf::Output output) {
    return checked_product(keys, places * (dpf::element_bits(output) / 8));
  }

  RowTaken(const BinPatches& patches, std::span<const std::uint64_t> ages, dpf::Output output, Tier)
      : patches_(patches),
        cursors_(patches),
        ages_(ages),
        output_(output),
        word_bytes_(dpf::element_bits(output) / 8),
        stride_(patches.places() * word_bytes_),
        words_(bytes(patches.places(), ages.size(), output)) {
    std::memset(words_.data(), 0, words_.size());
  }

  void take(const std::uint8_t* shares, std::size_t stride, std::uint64_t begin,
            std::uint64_t end) override {
    for (std::size_t i = 0; i < patches_.all().size(); ++i) {
      const std::span<const RowPlace> rows = cursors_.advance(patches_, i, begin, end);
      if (rows.empty()) continue;
      const BinPatches::Own& own = patches_.all()[i];
      for (std::size_t q = 0; q < ages_.size(); ++q) {
        if (own.number >= ages_[q]) continue;
        copy(shares + q * stride, rows, begin, &words_[q * stride_ + own.first * word_bytes_]);
      }
    }
  }

  void take_shares(const std::uint8_t* shares, std::size_t stride, std::uint64_t begin,
                   std::uint64_t end) {
    take(shares, stride, begin, end);
  }

  void merge(const RowTaken& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }

  void add(std::size_t i, const Patch::Section& section, std::size_t first, RowSums& sums) const {
    const BinPatches::Own& own = patches_.all()[i];
    const std::size_t place = (own.first + section.first) * word_bytes_;
    sums.add(section.lane, Bin(own.patch->differences(section), own.patch->extent(section)), 0,
             section.count, {&words_[first * stride_ + place], stride_, 0});
  }

 private:
  void copy(const std::uint8_t* shares, std::span<const RowPlace> rows, std::uint64_t begin,
            std::uint8_t* words) const {
    dpf::with_word(output_, [&]<class W>(W) {
      for (const RowPlace& at : rows) {
        std::memcpy(words + at.place * sizeof(W), shares + (at.row - begin) * sizeof(W), sizeof(W));
      }
    });
  }

  const BinPatches& patches_;
  RowCursors cursors_;
  std::span<const std::uint64_t> ages_;
  dpf::Output output_;
  std::size_t word_bytes_, stride_;
  Buffer<std::uint8_t> words_;
};

/// Calls `use` with the classes of the shares and of the sums of a layout.
template <class Use>
void with_taken(Layout layout, Use use) {
  if (layout == Layout::sliced) {
    use.template operator()<SlicedTaken, SlicedSums>();
  } else {
    use.template operator()<RowTaken, RowSums>();
  }
}

}  // namespace nescio::pir
