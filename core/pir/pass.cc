#include "pir/pass.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "base/buffer.h"
#include "base/math.h"
#include "dpf/shares.h"
#include "ggm/walk.h"
#include "pir/plan.h"
#include "pir/sums.h"

namespace nescio::pir {
namespace {

/// Keys first..first+count-1 of a batch.
struct KeyRange {
  const dpf::Keys& keys;
  std::size_t first;
  std::size_t count;
  Tier tier;
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

  /// Begins anew, with other keys in the memory of the first ones.
  void restart() { walk_.restart(); }

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

/// One pass over a bin for some of its keys, whose answers go to place(i). Threads divide the rows.
template <class Sums, class Place>
void pass_by_rows(const Bin& bin, const KeyRange& range, unsigned chunk_bits, ThreadPool& pool,
                  ShareTaps* taps, Place place) {
  struct Worker {
    Worker(const Bin& b, const KeyRange& r, unsigned bits)
        : expansion(r, bits), sums(b.extent, r.keys.shape().output, 1, r.count, r.tier) {}
    Expansion expansion;
    Sums sums;
  };
  std::vector<std::unique_ptr<Worker>> workers(pool.threads());
  workers[0] = std::make_unique<Worker>(bin, range, chunk_bits);
  const std::uint64_t chunk_rows = workers[0]->expansion.rows();
  const std::uint64_t first = bin.first_row, last = first + bin.extent.rows;
  const std::uint64_t first_chunk = first / chunk_rows;
  WorkStealingRanges ranges(ceil_div(last, chunk_rows) - first_chunk, pool.threads());
  pool.run(pool.threads(), [&](std::size_t, unsigned w) {
    ShareTap* tap = taps == nullptr ? nullptr : taps->tap(w);
    ranges.work(w, [&](std::uint64_t chunk) {
      if (!workers[w]) workers[w] = std::make_unique<Worker>(bin, range, chunk_bits);
      const std::uint64_t start = (first_chunk + chunk) * chunk_rows;
      const std::uint64_t begin = std::max(start, first), end = std::min(start + chunk_rows, last);
      workers[w]->sums.add(0, bin, begin, end, workers[w]->expansion.over(begin, end), tap);
    });
  });
  for (std::size_t w = 1; w < workers.size(); ++w) {
    if (workers[w]) workers[0]->sums.merge(workers[w]->sums);
  }
  workers[0]->sums.read(0, place);
}

/// Bins first..first+count-1, and of the keys to each those from..from+keys-1.
struct Part {
  std::size_t first, count;
  std::size_t from, keys;
};

/// A thread's memory for passes over some bins together, for some keys of each.
template <class Sums>
class Together {
 public:
  Together(const BinQueries& queries, const Part& part, unsigned chunk_bits, Tier tier)
      : queries_(queries),
        count_(part.count),
        keys_(part.keys),
        expansion_(take(part, tier), chunk_bits),
        sums_(queries.extent, queries.keys.shape().output, count_, keys_, tier) {}

  bool suits(const Part& part) const { return part.count == count_ && part.keys == keys_; }

  void answer(const Part& part, Tier tier) {
    take(part, tier);
    expansion_.restart();
    sums_.clear();
    const std::uint64_t chunk_rows = expansion_.rows(), rows = queries_.extent.rows;
    for (std::uint64_t begin = 0; begin < rows; begin += chunk_rows) {
      const std::uint64_t end = std::min(begin + chunk_rows, rows);
      const Shares shares = expansion_.over(begin, end);
      for (std::size_t i = 0; i < count_; ++i) {
        sums_.add(i, Bin(queries_, part.first + i), begin, end, shares.from(i * keys_));
      }
    }
    for (std::size_t i = 0; i < count_; ++i) {
      sums_.read(i,
                 [&](std::size_t key) { return queries_.place(part.first + i, part.from + key); });
    }
  }

 private:
  KeyRange take(const Part& part, Tier tier) {
    own_.take(queries_.keys,
              {queries_.bins, queries_.run, part.first, part.count, part.from, part.keys});
    return {own_, 0, own_.size(), tier};
  }

  BinQueries queries_;
  std::size_t count_, keys_;
  dpf::Keys own_;
  Expansion expansion_;
  Sums sums_;
};

/// Returns how many bins, with `keys` keys each, a thread walks together: as many as fill a pass, in the
/// memory for its sums, if every thread gets some tasks.
std::size_t bins_together(std::size_t bins, std::size_t keys, const SumsSize& size,
                          unsigned threads) {
  const std::size_t bin_bytes = ceil_div(keys, size.group_keys) * size.group_bytes;
  const std::size_t most = std::min(Plan::kKeysPerPass / keys, Plan::kSumBytes / bin_bytes);
  const std::size_t tasks = threads == 1 ? 1 : threads * Plan::kChunksPerThread;
  return std::max<std::size_t>(1, std::min(most, bins / tasks));
}

template <class Sums>
void answer_by_bins(const BinQueries& queries, std::size_t bins, ThreadPool& pool, Tier tier) {
  const dpf::Shape& shape = queries.keys.shape();
  const SumsSize size = sums_size(queries.extent, shape.output, tier);
  const std::size_t all = queries.keys_per_bin();
  const std::size_t keys = Plan(shape, shape.leaves(), all, size, 1).keys_per_pass;
  const std::size_t step = bins_together(bins, keys, size, pool.threads());
  const unsigned chunk_bits = Plan(shape, shape.leaves(), step * keys, size, 1).chunk_bits;
  std::vector<std::unique_ptr<Together<Sums>>> workers(pool.threads());
  pool.run(ceil_div(bins, step), [&](std::size_t task, unsigned w) {
    const std::size_t first = task * step;
    for (std::size_t from = 0; from < all; from += keys) {
      const Part part = {first, std::min(step, bins - first), from, std::min(keys, all - from)};
      if (!workers[w] || !workers[w]->suits(part)) {
        workers[w] = std::make_unique<Together<Sums>>(queries, part, chunk_bits, tier);
      }
      workers[w]->answer(part, tier);
    }
  });
}

}  // namespace

void answer_bin(const BinQueries& queries, std::size_t bin, ThreadPool& pool, Tier tier,
                ShareTaps* taps) {
  const dpf::Shape& shape = queries.keys.shape();
  dpf::Keys taken;
  if (queries.bins > 1) {
    taken.take(queries.keys, {queries.bins, queries.run, bin, 1, 0, queries.keys_per_bin()});
  }
  const dpf::Keys& keys = queries.bins > 1 ? taken : queries.keys;
  const std::uint64_t leaves = ceil_div(queries.extent.rows, dpf::leaf_elements(shape.output));
  const Plan plan(shape, leaves, keys.size(), sums_size(queries.extent, shape.output, tier),
                  pool.threads());
  for (std::size_t first = 0; first < keys.size(); first += plan.keys_per_pass) {
    const std::size_t count = std::min(plan.keys_per_pass, keys.size() - first);
    const auto place = [&](std::size_t i) { return queries.place(bin, first + i); };
    if (taps != nullptr) taps->begin(first, count);
    with_sums(queries.extent.layout, [&]<class Sums>() {
      pass_by_rows<Sums>(Bin(queries, bin), {keys, first, count, tier}, plan.chunk_bits, pool, taps,
                         place);
    });
    if (taps != nullptr) taps->end();
  }
}

void answer_bins(const BinQueries& queries, std::size_t bins, ThreadPool& pool, Tier tier) {
  with_sums(queries.extent.layout,
            [&]<class Sums>() { answer_by_bins<Sums>(queries, bins, pool, tier); });
}

}  // namespace nescio::pir
