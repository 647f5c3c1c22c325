#pragma once

// The sums of shares times rows that a thread keeps during a pass over bins, for each layout.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/buffer.h"
#include "dpf/shares.h"
#include "pir/answer.h"
#include "pir/pass.h"
#include "pir/plan.h"
#include "pir/product/bit_product.h"
#include "pir/product/word_product.h"

namespace nescio::pir {

/// The rows of one bin that are in memory. Row first_row is at `data`.
struct Bin {
  const std::uint8_t* data;
  Extent extent;
  std::uint64_t first_row = 0;

  Bin(const std::uint8_t* memory, const Extent& own) : data(memory), extent(own) {}
  Bin(const BinQueries& queries, std::size_t bin)
      : data(queries.data + bin * queries.bin_bytes),
        extent(queries.extent),
        first_row(queries.first_row) {}

  /// Returns the tile that begins with a row.
  Tile tile(std::uint64_t row) const {
    return {data + extent.offset(row - first_row), extent.blocks(), extent.lines(row - first_row)};
  }
  /// Returns a row in the unsliced layout.
  const std::uint8_t* row(std::uint64_t number) const {
    return data + (number - first_row) * extent.row_bytes;
  }
};

/// Shares of a chunk. Those of key q, beginning with row first_row, are at data + q * stride.
struct Shares {
  const std::uint8_t* data;
  std::size_t stride;
  std::uint64_t first_row;

  /// Returns the shares of the keys from key q on.
  Shares from(std::size_t q) const { return {data + q * stride, stride, first_row}; }
};

/// Sums of bit shares over some sliced bins, for as many keys of each.
class SlicedSums {
 public:
  SlicedSums(const Extent& extent, dpf::Output, std::size_t bins, std::size_t keys, Tier tier)
      : product_(bit_product(tier)),
        keys_(keys),
        blocks_(extent.blocks()),
        bin_bytes_(product_.sum_bytes(keys, blocks_)),
        scratch_(product_.scratch_bytes(keys)),
        sums_(bins * bin_bytes_),
        rows_(kKeyGroup * extent.row_bytes) {
    clear();
  }

  void clear() { std::memset(sums_.data(), 0, sums_.size()); }

  /// Adds rows begin..end-1 of the i-th bin. A tap gets each tile's shares in the layout of the product.
  void add(std::size_t i, const Bin& bin, std::uint64_t begin, std::uint64_t end,
           const Shares& shares, ShareTap* tap = nullptr) {
    for (std::uint64_t row = begin; row < end; row += kTileRows) {
      const Tile tile = bin.tile(row);
      product_.lay_out(shares.data + (row - shares.first_row) / 8, shares.stride, keys_,
                       scratch_.data());
      if (tap != nullptr) tap->take(scratch_.data(), 0, row, std::min(row + kTileRows, end));
      product_.add_tile(tile, scratch_.data(), keys_, &sums_[i * bin_bytes_]);
    }
  }

  /// Adds all rows of the i-th bin, whose shares were copied (BitProduct::copy_shares).
  void add_copies(std::size_t i, const Bin& bin, const std::uint8_t* copies, std::size_t stride) {
    for (std::uint64_t row = 0; row < bin.extent.rows; row += kTileRows) {
      const Tile tile = bin.tile(row);
      product_.lay_out_copies(copies + row, stride, tile.lines, keys_, scratch_.data());
      product_.add_tile(tile, scratch_.data(), keys_, &sums_[i * bin_bytes_]);
    }
  }

  void merge(const SlicedSums& other) {
    for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] ^= other.sums_[i];
  }

  /// Copies the sum of key k of the i-th bin to place(k).
  template <class Place>
  void read(std::size_t i, Place place) {
    const std::size_t row_bytes = rows_.size() / kKeyGroup;
    for (std::size_t first = 0; first < keys_; first += kKeyGroup) {
      const std::size_t count = std::min(kKeyGroup, keys_ - first);
      product_.read_sums(&sums_[i * bin_bytes_], first, count, row_bytes, rows_.data());
      for (std::size_t k = 0; k < count; ++k) {
        std::memcpy(place(first + k), &rows_[k * row_bytes], row_bytes);
      }
    }
  }

 private:
  const BitProduct& product_;
  std::size_t keys_, blocks_, bin_bytes_;
  Buffer<std::uint8_t> scratch_;
  Buffer<std::uint8_t> sums_;
  Buffer<std::uint8_t> rows_;  // of a group of keys
};

/// The same over bins in the unsliced layout.
class RowSums {
 public:
  RowSums(const Extent& extent, dpf::Output output, std::size_t bins, std::size_t keys, Tier tier)
      : output_(output),
        add_rows_(word_product(output, tier)),
        keys_(keys),
        bytes_(answer_bytes(output, extent.row_bytes)),
        rows_(Plan::rows_per_step(extent.row_bytes)),
        sums_(bins * keys * bytes_) {
    clear();
  }

  void clear() { std::memset(sums_.data(), 0, sums_.size()); }

  /// Adds rows begin..end-1 of the i-th bin. A tap gets their shares.
  void add(std::size_t i, const Bin& bin, std::uint64_t begin, std::uint64_t end,
           const Shares& shares, ShareTap* tap = nullptr) {
    const std::size_t row_bytes = bin.extent.row_bytes;
    const unsigned share_bits = dpf::element_bits(output_);
    if (tap != nullptr) {
      const std::uint64_t skipped = begin - shares.first_row;
      tap->take(shares.data + skipped * share_bits / 8, shares.stride, begin, end);
    }
    for (std::uint64_t row = begin; row < end; row += rows_) {
      const std::size_t count = std::min<std::uint64_t>(rows_, end - row);
      add_rows_(bin.row(row), count, row_bytes,
                shares.data + (row - shares.first_row) * share_bits / 8, shares.stride, keys_,
                &sums_[i * keys_ * bytes_], bytes_);
    }
  }

  void merge(const RowSums& other) {
    dpf::combine(output_, sums_.data(), other.sums_.data(), sums_.size(), sums_.data());
  }

  template <class Place>
  void read(std::size_t i, Place place) {
    const std::uint8_t* own = &sums_[i * keys_ * bytes_];
    for (std::size_t k = 0; k < keys_; ++k) std::memcpy(place(k), own + k * bytes_, bytes_);
  }

 private:
  dpf::Output output_;
  AddRows add_rows_;
  std::size_t keys_, bytes_, rows_;
  Buffer<std::uint8_t> sums_;
};

/// Returns the memory of a thread for the sums of a pass.
inline SumsSize sums_size(const Extent& bin, dpf::Output output, Tier tier) {
  if (bin.layout == Layout::rows) return {answer_bytes(output, bin.row_bytes), 1};
  const BitProduct& product = bit_product(tier);
  const std::size_t keys = product.keys_per_line;
  return {product.sum_bytes(keys, bin.blocks()), keys};
}

/// Calls `use` with the class of the sums of a layout.
template <class Use>
void with_sums(Layout layout, Use use) {
  if (layout == Layout::sliced) {
    use.template operator()<SlicedSums>();
  } else {
    use.template operator()<RowSums>();
  }
}

}  // namespace nescio::pir
