#include "pir/pass.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "base/math.h"
#include "dpf/shares.h"
#include "ggm/walk.h"
#include "pir/answer.h"
#include "pir/plan.h"
#include "pir/product/bit_product.h"
#include "pir/product/word_product.h"

namespace nescio::pir {
namespace {

/// The rows of one bin.
struct Bin {
  const std::uint8_t* data;
  Extent extent;
};

/// Keys first..first+count-1 of a batch.
struct KeyRange {
  const dpf::Keys& keys;
  std::size_t first;
  std::size_t count;
  Tier tier;
};

/// Shares of a chunk. Those of key q, beginning with row first_row, are at data + q * stride.
struct Shares {
  const std::uint8_t* data;
  std::size_t stride;
  std::uint64_t first_row;

  /// Returns the shares of the keys from key q on.
  Shares from(std::size_t q) const { return {data + q * stride, stride, first_row}; }
};

/// Expands the keys of a pass over one chunk after the other.
class Expansion {
 public:
  Expansion(const KeyRange& range, unsigned chunk_bits)
      : range_(range),
        leaf_rows_(dpf::leaf_elements(range.keys.shape().output)),
        walk_(range.keys.forest(range.first, range.count, range.tier), chunk_bits),
        leaf_shares_(range.keys, range.tier),
        shares_(range.count * walk_.chunk()) {}

  std::uint64_t rows() const { return walk_.chunk() * leaf_rows_; }

  Shares over(std::uint64_t begin, std::uint64_t end) {
    const ggm::Nodes nodes = walk_.nodes(begin / leaf_rows_, ceil_div(end, leaf_rows_));
    leaf_shares_.write(range_.first, range_.count, nodes.data, nodes.per_tree, shares_[0].data());
    return {reinterpret_cast<const std::uint8_t*>(shares_.data()),
            nodes.per_tree * sizeof(dpf::Leaf), nodes.first * leaf_rows_};
  }

 private:
  KeyRange range_;
  std::uint64_t leaf_rows_;
  ggm::Walk walk_;
  dpf::LeafShares leaf_shares_;
  Buffer<dpf::Leaf> shares_;
};

/// Sums of bit shares over a sliced table.
class SlicedSums {
 public:
  SlicedSums(const Bin& bin, const KeyRange& range)
      : bin_(bin),
        product_(bit_product(range.tier)),
        keys_(range.count),
        blocks_(bin.extent.blocks()),
        scratch_(product_.scratch_bytes(keys_)),
        sums_(product_.sum_bytes(keys_, blocks_)) {
    std::memset(sums_.data(), 0, sums_.size());
  }

  void add(std::uint64_t begin, std::uint64_t end, const Shares& shares) {
    for (std::uint64_t row = begin; row < end; row += kTileRows) {
      const Tile tile = {bin_.data + row / kTileRows * bin_.extent.tile_bytes(), blocks_,
                         bin_.extent.lines(row)};
      product_.lay_out(shares.data + (row - shares.first_row) / 8, shares.stride, keys_,
                       scratch_.data());
      product_.add_tile(tile, scratch_.data(), keys_, sums_.data());
    }
  }

  void merge(const SlicedSums& other) {
    for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] ^= other.sums_[i];
  }

  void read(std::uint8_t* answers) const {
    const std::size_t row_bytes = bin_.extent.row_bytes;
    for (std::size_t first = 0; first < keys_; first += kKeyGroup) {
      product_.read_sums(sums_.data(), first, std::min(kKeyGroup, keys_ - first), row_bytes,
                         answers + first * row_bytes);
    }
  }

 private:
  Bin bin_;
  const BitProduct& product_;
  std::size_t keys_, blocks_;
  Buffer<std::uint8_t> scratch_;
  Buffer<std::uint8_t> sums_;
};

/// Sums of shares over rows in the unsliced layout.
class RowSums {
 public:
  RowSums(const Bin& bin, const KeyRange& range)
      : bin_(bin),
        output_(range.keys.shape().output),
        add_rows_(word_product(output_, range.tier)),
        keys_(range.count),
        bytes_(answer_bytes(output_, bin.extent.row_bytes)),
        rows_(Plan::rows_per_step(bin.extent.row_bytes)),
        sums_(keys_ * bytes_) {
    std::memset(sums_.data(), 0, sums_.size());
  }

  void add(std::uint64_t begin, std::uint64_t end, const Shares& shares) {
    const std::size_t row_bytes = bin_.extent.row_bytes;
    const unsigned share_bits = dpf::element_bits(output_);
    for (std::uint64_t row = begin; row < end; row += rows_) {
      const std::size_t count = std::min<std::uint64_t>(rows_, end - row);
      add_rows_(bin_.data + row * row_bytes, count, row_bytes,
                shares.data + (row - shares.first_row) * share_bits / 8, shares.stride, keys_,
                sums_.data(), bytes_);
    }
  }

  void merge(const RowSums& other) {
    dpf::combine(output_, sums_.data(), other.sums_.data(), sums_.size(), sums_.data());
  }

  void read(std::uint8_t* answers) const { std::memcpy(answers, sums_.data(), sums_.size()); }

 private:
  Bin bin_;
  dpf::Output output_;
  AddRows add_rows_;
  std::size_t keys_, bytes_, rows_;
  Buffer<std::uint8_t> sums_;
};

/// Distributes chunks among workers. Each first takes the chunks of its own range of the table, which
/// is the same in every call, and then steals from the other ranges.
class WorkStealingRanges {
 public:
  WorkStealingRanges(std::uint64_t chunks, unsigned workers) : next_(workers), end_(workers) {
    for (unsigned w = 0; w < workers; ++w) {
      next_[w].value = chunks * w / workers;
      end_[w] = chunks * (w + 1) / workers;
    }
  }

  template <class Work>
  void work(unsigned worker, Work work) {
    for (std::size_t i = 0; i < end_.size(); ++i) {
      const std::size_t range = (worker + i) % end_.size();
      for (std::uint64_t c = next_[range].value++; c < end_[range]; c = next_[range].value++) {
        work(c);
      }
    }
  }

 private:
  struct alignas(64) Counter {
    std::atomic<std::uint64_t> value;
  };
  std::vector<Counter> next_;
  std::vector<std::uint64_t> end_;
};

/// One pass over the table for some keys.
template <class Sums>
void pass(const Bin& bin, const KeyRange& range, unsigned chunk_bits, std::uint8_t* out,
          ThreadPool& pool) {
  struct Worker {
    Worker(const Bin& b, const KeyRange& r, unsigned bits) : expansion(r, bits), sums(b, r) {}
    Expansion expansion;
    Sums sums;
  };
  std::vector<std::unique_ptr<Worker>> workers(pool.threads());
  workers[0] = std::make_unique<Worker>(bin, range, chunk_bits);
  const std::uint64_t chunk_rows = workers[0]->expansion.rows(), rows = bin.extent.rows;
  WorkStealingRanges ranges(ceil_div(rows, chunk_rows), pool.threads());
  pool.run(pool.threads(), [&](std::size_t, unsigned w) {
    ranges.work(w, [&](std::uint64_t chunk) {
      if (!workers[w]) workers[w] = std::make_unique<Worker>(bin, range, chunk_bits);
      const std::uint64_t begin = chunk * chunk_rows, end = std::min(begin + chunk_rows, rows);
      workers[w]->sums.add(begin, end, workers[w]->expansion.over(begin, end));
    });
  });
  for (std::size_t w = 1; w < workers.size(); ++w) {
    if (workers[w]) workers[0]->sums.merge(workers[w]->sums);
  }
  workers[0]->sums.read(out);
}

/// One pass over some bins for the keys of each, by one thread.
template <class Sums>
void pass_together(const BinRun& bins, const KeyRange& range, unsigned chunk_bits,
                   std::uint8_t* out, std::size_t answer_size) {
  const std::size_t each = range.count / bins.count;
  std::vector<Sums> sums;
  sums.reserve(bins.count);
  for (std::size_t i = 0; i < bins.count; ++i) {
    sums.emplace_back(Bin{bins.data + i * bins.bytes, bins.extent},
                      KeyRange{range.keys, range.first + i * each, each, range.tier});
  }
  Expansion expansion(range, chunk_bits);
  const std::uint64_t chunk_rows = expansion.rows(), rows = bins.extent.rows;
  for (std::uint64_t begin = 0; begin < rows; begin += chunk_rows) {
    const std::uint64_t end = std::min(begin + chunk_rows, rows);
    const Shares shares = expansion.over(begin, end);
    for (std::size_t i = 0; i < bins.count; ++i) sums[i].add(begin, end, shares.from(i * each));
  }
  for (std::size_t i = 0; i < bins.count; ++i) sums[i].read(out + i * each * answer_size);
}

/// Returns the memory of a thread for the sums of a pass.
SumsSize sums_size(const Extent& bin, dpf::Output output, Tier tier) {
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

}  // namespace

void answer_bin(const BinRun& bin, const dpf::Keys& keys, std::uint8_t* out, ThreadPool& pool,
                Tier tier) {
  const dpf::Output output = keys.shape().output;
  const Plan plan(keys.shape(), keys.size(), sums_size(bin.extent, output, tier), pool.threads());
  const std::size_t bytes = answer_bytes(output, bin.extent.row_bytes);
  for (std::size_t first = 0; first < keys.size(); first += plan.keys_per_pass) {
    const std::size_t count = std::min(plan.keys_per_pass, keys.size() - first);
    with_sums(bin.extent.layout, [&]<class Sums>() {
      pass<Sums>({bin.data, bin.extent}, {keys, first, count, tier}, plan.chunk_bits,
                 out + first * bytes, pool);
    });
  }
}

void answer_bins(const BinRun& bins, const dpf::Keys& keys, std::uint8_t* out, Tier tier) {
  const dpf::Output output = keys.shape().output;
  const std::size_t each = keys.size() / bins.count;
  const std::size_t bytes = answer_bytes(output, bins.extent.row_bytes);
  const Plan plan(keys.shape(), keys.size(), sums_size(bins.extent, output, tier), 1);
  const bool together = keys.size() <= plan.keys_per_pass;
  const std::size_t step = together ? keys.size() : std::min(plan.keys_per_pass, each);
  for (std::size_t first = 0; first < keys.size();) {
    const std::size_t left = together ? step : std::min(step, each - first % each);
    const BinRun own = {bins.data + first / each * bins.bytes, bins.extent, bins.bytes,
                        together ? bins.count : 1};
    with_sums(bins.extent.layout, [&]<class Sums>() {
      pass_together<Sums>(own, {keys, first, left, tier}, plan.chunk_bits, out + first * bytes,
                          bytes);
    });
    first += left;
  }
}

std::size_t bins_per_pass(const Extent& bin, const dpf::Shape& shape, std::size_t keys, Tier tier) {
  const std::size_t most =
      Plan(shape, SIZE_MAX, sums_size(bin, shape.output, tier), 1).keys_per_pass;
  return std::max<std::size_t>(1, most / keys);
}

}  // namespace nescio::pir
