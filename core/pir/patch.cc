#include "pir/patch.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/math.h"
#include "dpf/shares.h"
#include "ggm/leaves.h"
#include "pir/answer.h"
#include "pir/slicer.h"
#include "pir/sums.h"

namespace nescio::pir {
namespace {

/// Changed rows that are multiplied at a time: a tile.
constexpr std::size_t kRowsTogether = kTileRows;

/// Maximum keys of a task, and the least if there are several threads: fewer would not fill a product.
constexpr std::size_t kMostKeys = 64;
constexpr std::size_t kFewestKeys = 8;

/// differences = a - b, for one row. The last word of both is padded with zeros.
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

/// A changed row of a bin.
struct Change {
  std::uint64_t row;
  const std::uint8_t* difference;
};

/// The changes of a bin.
struct ChangedBin {
  std::size_t group;
  std::uint64_t bin;
  std::vector<Change> changes;
};

/// Sorts the changes of patches by bins and rows. A row that several patches change occurs in each.
std::vector<ChangedBin> sort_changes(std::span<const Patch* const> patches) {
  std::vector<Change> all;
  for (const Patch* patch : patches) {
    for (std::size_t i = 0; i < patch->indices().size(); ++i) {
      all.push_back({patch->indices()[i], patch->difference(i)});
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Change& a, const Change& b) { return a.row < b.row; });
  std::vector<ChangedBin> bins;
  for (const Change& change : all) {
    const Bins::Place at = patches[0]->extent().bins().place(change.row);
    if (bins.empty() || bins.back().group != at.group || bins.back().bin != at.bin) {
      bins.push_back({at.group, at.bin, {}});
    }
    bins.back().changes.push_back({at.row, change.difference});
  }
  return bins;
}

/// Some changed rows of a bin as rows of a small table, and the places of their shares.
class ChangedRows {
 public:
  ChangedRows(const TableExtent& table, std::size_t width, Tier tier)
      : output_(table.output()),
        extent_{kRowsTogether, width, table.layout()},
        slicer_(NESCIO_PICK(tier, kSlicer)),
        rows_(kRowsTogether * width),
        table_(extent_.bytes()) {}

  const Extent& extent() const { return extent_; }
  Bin bin() const { return {table_.data(), extent_}; }
  std::size_t count() const { return elements_.size(); }
  std::span<const std::uint64_t> leaves() const { return leaves_; }

  void take(std::span<const Change> changes) {
    const unsigned leaf_bits = dpf::leaf_element_bits(output_);
    leaves_.clear();
    elements_.clear();
    const bool sliced = extent_.layout == Layout::sliced;
    std::uint8_t* rows = sliced ? rows_.data() : table_.data();
    for (std::size_t i = 0; i < changes.size(); ++i) {
      const std::uint64_t leaf = changes[i].row >> leaf_bits;
      if (leaves_.empty() || leaves_.back() != leaf) leaves_.push_back(leaf);
      const std::uint64_t element = changes[i].row & ((std::uint64_t{1} << leaf_bits) - 1);
      elements_.push_back(((leaves_.size() - 1) << leaf_bits) + element);
      std::memcpy(rows + i * extent_.row_bytes, changes[i].difference, extent_.row_bytes);
    }
    extent_.rows = changes.size();
    if (sliced) {
      slicer_.slice(rows, changes.size(), extent_.row_bytes, extent_.lines(0), table_.data());
    }
  }

  /// Copies the shares of the rows from those of their leaves; bits become packed.
  void gather(const std::uint8_t* leaves, std::uint8_t* shares) const {
    if (output_ == dpf::Output::bit) return gather_bits(leaves, shares);
    dpf::with_word(output_, [&]<class W>(W) {
      for (std::size_t i = 0; i < elements_.size(); ++i) {
        std::memcpy(shares + i * sizeof(W), leaves + elements_[i] * sizeof(W), sizeof(W));
      }
    });
  }

 private:
  void gather_bits(const std::uint8_t* leaves, std::uint8_t* shares) const {
    std::memset(shares, 0, kRowsTogether / 8);
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      const unsigned bit = leaves[elements_[i] / 8] >> (elements_[i] % 8) & 1;
      shares[i / 8] = static_cast<std::uint8_t>(shares[i / 8] | bit << (i % 8));
    }
  }

  dpf::Output output_;
  Extent extent_;
  const Slicer& slicer_;
  Buffer<std::uint8_t> rows_, table_;
  std::vector<std::uint64_t> leaves_, elements_;
};

/// The keys of all lookups to the bins of a group, and the places of their answers.
struct Answers {
  const TableExtent& extent;
  std::span<const dpf::Keys* const> keys;
  std::size_t bytes;  ///< of an answer
  std::uint8_t* data;

  std::size_t keys_to(const ChangedBin& bin) const {
    return keys[bin.group]->size() / extent.bins().groups()[bin.group].count;
  }
  /// Returns the number, among the keys of the group, of the i-th key to a bin.
  std::size_t key(const ChangedBin& bin, std::size_t i) const {
    const BinGroup& group = extent.bins().groups()[bin.group];
    return (i / group.keys * group.count + bin.bin) * group.keys + i % group.keys;
  }
  std::uint8_t* place(const ChangedBin& bin, std::size_t i) const {
    const Bins& bins = extent.bins();
    const std::uint64_t run = bins.groups()[bin.group].keys;
    const std::uint64_t slot = bins.first_slot(bin.group) + bin.bin * run + i % run;
    return data + (i / run * bins.slots() + slot) * bytes;
  }
};

/// Some keys to a bin.
struct Task {
  const ChangedBin* bin;
  std::size_t first, count;
};

/// Adds the changes of a bin to the answers of some keys.
template <class Sums>
void add_changes(const Task& task, const Answers& answers, Tier tier) {
  const dpf::Keys& keys = *answers.keys[task.bin->group];
  const dpf::Output output = keys.shape().output;
  ChangedRows rows(answers.extent, answers.bytes, tier);
  Sums sums(rows.extent(), output, 1, task.count, tier);
  const std::size_t stride = kRowsTogether * dpf::element_bits(output) / 8;
  Buffer<std::uint8_t> shares(task.count * stride);
  Buffer<dpf::Leaf> leaves(kRowsTogether);
  const dpf::LeafShares leaf_shares(keys, tier);
  ggm::Leaves walk(keys.shape().depth(), keys.shape().radix_bits(), kRowsTogether);
  const std::span<const Change> changes = task.bin->changes;
  for (std::size_t first = 0; first < changes.size(); first += kRowsTogether) {
    rows.take(changes.subspan(first, std::min(kRowsTogether, changes.size() - first)));
    walk.choose(rows.leaves());
    for (std::size_t i = 0; i < task.count; ++i) {
      const std::size_t key = answers.key(*task.bin, task.first + i);
      const Block* nodes = walk.nodes(keys.forest(key, 1, tier));
      leaf_shares.write(key, 1, nodes, rows.leaves().size(), leaves[0].data());
      rows.gather(reinterpret_cast<const std::uint8_t*>(leaves.data()), &shares[i * stride]);
    }
    sums.add(0, rows.bin(), 0, rows.count(), {shares.data(), stride, 0});
  }
  Buffer<std::uint8_t> totals(task.count * answers.bytes);
  sums.read(0, [&](std::size_t i) { return &totals[i * answers.bytes]; });
  for (std::size_t i = 0; i < task.count; ++i) {
    std::uint8_t* answer = answers.place(*task.bin, task.first + i);
    dpf::combine(output, answer, &totals[i * answers.bytes], answers.bytes, answer);
  }
}

std::vector<Task> divide(const std::vector<ChangedBin>& bins, const Answers& answers,
                         unsigned threads) {
  std::vector<Task> tasks;
  for (const ChangedBin& bin : bins) {
    const std::size_t keys = answers.keys_to(bin);
    const std::size_t each =
        std::clamp(ceil_div(keys, threads * kFewestKeys) * kFewestKeys, kFewestKeys, kMostKeys);
    for (std::size_t first = 0; first < keys; first += each) {
      tasks.push_back({&bin, first, std::min(each, keys - first)});
    }
  }
  return tasks;
}

}  // namespace

Patch::Patch(TableExtent extent, std::span<const std::uint64_t> indices,
             const std::uint8_t* old_rows, const std::uint8_t* new_rows)
    : extent_(std::move(extent)),
      width_(answer_bytes(extent_.output(), extent_.row_bytes())),
      indices_(indices.size()),
      differences_(checked_product(indices.size(), width_)) {
  check_indices(extent_, indices);
  std::copy(indices.begin(), indices.end(), indices_.data());
  const std::size_t bytes = extent_.row_bytes();
  for (std::size_t i = 0; i < indices.size(); ++i) {
    subtract(extent_.output(), old_rows + i * bytes, new_rows + i * bytes, bytes,
             &differences_[i * width_]);
  }
}

void add_patches(std::span<const Patch* const> patches, std::span<const dpf::Keys* const> keys,
                 std::uint8_t* answers, ThreadPool& pool, Tier tier) {
  if (patches.empty()) return;
  const TableExtent& extent = patches[0]->extent();
  for (const Patch* patch : patches) {
    if (patch->extent() == extent) continue;
    throw Error(ErrorKind::argument, "patches: found those of different tables, expected one");
  }
  if (count_lookups(extent, keys) == 0) return;
  const Answers all = {extent, keys, answer_bytes(extent.output(), extent.row_bytes()), answers};
  const std::vector<ChangedBin> bins = sort_changes(patches);
  const std::vector<Task> tasks = divide(bins, all, pool.threads());
  with_sums(extent.layout(), [&]<class Sums>() {
    pool.run(tasks.size(),
             [&](std::size_t i, unsigned) { add_changes<Sums>(tasks[i], all, tier); });
  });
}

}  // namespace nescio::pir
