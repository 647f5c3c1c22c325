#include "pir/patch/patched.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/math.h"
#include "dpf/shares.h"
#include "ggm/leaves.h"
#include "pir/answer.h"
#include "pir/sums.h"

namespace nescio::pir {
namespace {

/// Leaves that are walked to at a time: their shares stay in the second-level cache.
constexpr std::size_t kLeavesTogether = 2048;

/// Maximum keys of a task, and the least if there are several threads: fewer would not fill a product.
constexpr std::size_t kMostKeys = 64;
constexpr std::size_t kFewestKeys = 8;

/// Bytes of the shares of changed rows that a task keeps, unless those of kFewestKeys keys are more.
constexpr std::size_t kShareBytes = 1 << 20;

/// The keys of all lookups to the bins of a group, and the places of their answers.
struct Answers {
  const TableExtent& extent;
  std::span<const std::uint64_t> ages;
  std::span<const dpf::Keys* const> keys;
  std::size_t bytes;  ///< of an answer
  std::uint8_t* data;
};

/// A bin, and the keys to it in the order of lookups.
struct BinKeys {
  std::size_t group;
  std::uint64_t bin;

  std::size_t count(const Answers& all) const {
    return all.ages.size() * all.extent.bins().groups()[group].keys;
  }
  std::uint64_t age(const Answers& all, std::size_t i) const {
    return all.ages[i / all.extent.bins().groups()[group].keys];
  }
  /// Returns the number, among the keys of the group, of the i-th key to the bin.
  std::size_t key(const Answers& all, std::size_t i) const {
    const BinGroup& own = all.extent.bins().groups()[group];
    return (i / own.keys * own.count + bin) * own.keys + i % own.keys;
  }
  std::uint8_t* answer(const Answers& all, std::size_t i) const {
    const Bins& bins = all.extent.bins();
    const std::uint64_t keys = bins.groups()[group].keys;
    const std::uint64_t slot = bins.first_slot(group) + bin * keys + i % keys;
    return all.data + (i / keys * bins.slots() + slot) * all.bytes;
  }
};

/// Some keys to a bin.
struct Task {
  BinKeys to;
  std::size_t first, count;
};

/// A section of a patch, and the places of the shares of its rows.
struct Part {
  const Patch* patch;
  const Patch::Section* section;
  std::size_t number;        ///< of the patch
  std::size_t share_offset;  ///< of its first share among those of a key, in bytes
  std::size_t next = 0;      ///< the first row whose share is not known yet
};

/// Lists the sections of the first patches in a bin; their shares begin at whole tiles.
std::vector<Part> parts_of(std::span<const Patch* const> patches, const BinKeys& to,
                           std::size_t* share_bytes) {
  std::vector<Part> parts;
  std::size_t offset = 0;
  for (std::size_t i = 0; i < patches.size(); ++i) {
    const std::size_t tile = kTileRows * dpf::element_bits(patches[i]->extent().output()) / 8;
    for (const Patch::Section& section : patches[i]->sections(to.group, to.bin)) {
      parts.push_back({patches[i], &section, i, offset});
      offset += ceil_div(section.count, kTileRows) * tile;
    }
  }
  *share_bytes = offset;
  return parts;
}

/// Lists the leaves that have a row of one of the parts; they increase.
std::vector<std::uint64_t> leaves_of(const std::vector<Part>& parts, unsigned leaf_bits) {
  std::vector<std::uint64_t> all, own, both;
  for (const Part& part : parts) {
    own.clear();
    for (const std::uint64_t row : part.patch->rows(*part.section)) {
      if (own.empty() || own.back() != row >> leaf_bits) own.push_back(row >> leaf_bits);
    }
    both.clear();
    std::set_union(all.begin(), all.end(), own.begin(), own.end(), std::back_inserter(both));
    std::swap(all, both);
  }
  return all;
}

/// The changed rows of some leaves: their places among the shares of these leaves.
class ChangedRows {
 public:
  explicit ChangedRows(dpf::Output output)
      : output_(output), leaf_bits_(dpf::leaf_element_bits(output)) {}

  /// A part's rows first..first+count-1, whose places begin with places_[at].
  struct Run {
    std::size_t number, share_offset, first, count, at;
  };

  /// Takes the next rows of each part, up to the last of these leaves.
  void take(std::vector<Part>& parts, std::span<const std::uint64_t> leaves) {
    runs_.clear();
    places_.clear();
    for (Part& part : parts) {
      const std::span<const std::uint64_t> rows = part.patch->rows(*part.section);
      const std::size_t first = part.next, at = places_.size();
      for (std::size_t leaf = 0; part.next < rows.size(); ++part.next) {
        const std::uint64_t row = rows[part.next], wanted = row >> leaf_bits_;
        if (wanted > leaves.back()) break;
        while (leaves[leaf] < wanted) ++leaf;
        const std::uint64_t element = row & ((std::uint64_t{1} << leaf_bits_) - 1);
        places_.push_back(static_cast<std::uint32_t>(leaf << leaf_bits_ | element));
      }
      if (part.next == first) continue;
      runs_.push_back({part.number, part.share_offset, first, part.next - first, at});
    }
  }

  /// Copies shares of the rows of the first `age` patches from those of the leaves; bits become packed.
  void gather(const std::uint8_t* leaves, std::uint64_t age, std::uint8_t* shares) const {
    for (const Run& run : runs_) {
      if (run.number >= age) break;
      if (output_ == dpf::Output::bit) {
        gather_bits(leaves, run, shares + run.share_offset);
      } else {
        gather_words(leaves, run, shares + run.share_offset);
      }
    }
  }

 private:
  void gather_bits(const std::uint8_t* leaves, const Run& run, std::uint8_t* shares) const {
    const std::uint32_t* places = &places_[run.at];
    const auto bit = [&](std::size_t i) {
      return static_cast<unsigned>(leaves[places[i] / 8] >> (places[i] % 8) & 1);
    };
    std::size_t i = 0;
    for (; i < run.count && (run.first + i) % 8 != 0; ++i) {
      shares[(run.first + i) / 8] |= static_cast<std::uint8_t>(bit(i) << (run.first + i) % 8);
    }
    for (; i + 8 <= run.count; i += 8) {
      unsigned byte = 0;
      for (unsigned j = 0; j < 8; ++j) byte |= bit(i + j) << j;
      shares[(run.first + i) / 8] = static_cast<std::uint8_t>(byte);
    }
    for (; i < run.count; ++i) {
      shares[(run.first + i) / 8] |= static_cast<std::uint8_t>(bit(i) << (run.first + i) % 8);
    }
  }

  void gather_words(const std::uint8_t* leaves, const Run& run, std::uint8_t* shares) const {
    dpf::with_word(output_, [&]<class W>(W) {
      for (std::size_t i = 0; i < run.count; ++i) {
        std::memcpy(shares + (run.first + i) * sizeof(W), leaves + places_[run.at + i] * sizeof(W),
                    sizeof(W));
      }
    });
  }

  dpf::Output output_;
  unsigned leaf_bits_;
  std::vector<Run> runs_;
  std::vector<std::uint32_t> places_;
};

/// Writes the shares of all parts, zeros for the patches that a key does not need.
void share_parts(const Task& task, const Answers& all, std::vector<Part>& parts,
                 std::uint8_t* shares, std::size_t stride, Tier tier) {
  const dpf::Keys& keys = *all.keys[task.to.group];
  const dpf::Output output = keys.shape().output;
  const std::vector<std::uint64_t> leaves = leaves_of(parts, dpf::leaf_element_bits(output));
  const std::size_t together = std::min(kLeavesTogether, leaves.size());
  std::memset(shares, 0, task.count * stride);
  ChangedRows rows(output);
  Buffer<dpf::Leaf> leaf_memory(together);
  const dpf::LeafShares leaf_shares(keys, tier);
  ggm::Leaves walk(keys.shape().depth(), keys.shape().radix_bits(), together);
  for (std::size_t first = 0; first < leaves.size(); first += together) {
    const std::span<const std::uint64_t> own =
        std::span(leaves).subspan(first, std::min(together, leaves.size() - first));
    rows.take(parts, own);
    walk.choose(own);
    for (std::size_t i = 0; i < task.count; ++i) {
      if (task.to.age(all, task.first + i) == 0) continue;
      const std::size_t key = task.to.key(all, task.first + i);
      const Block* nodes = walk.nodes(keys.forest(key, 1, tier));
      leaf_shares.write(key, 1, nodes, own.size(), leaf_memory[0].data());
      rows.gather(reinterpret_cast<const std::uint8_t*>(leaf_memory.data()),
                  task.to.age(all, task.first + i), shares + i * stride);
    }
  }
}

/// Adds the changes of a bin to the answers of some keys.
template <class Sums>
void add_changes(const Task& task, std::span<const Patch* const> patches, const Answers& all,
                 Tier tier) {
  std::uint64_t oldest = 0;
  for (std::size_t i = 0; i < task.count; ++i) {
    oldest = std::max(oldest, task.to.age(all, task.first + i));
  }
  std::size_t stride = 0;
  std::vector<Part> parts = parts_of(patches.first(oldest), task.to, &stride);
  if (parts.empty()) return;
  Buffer<std::uint8_t> shares(checked_product(task.count, stride));
  share_parts(task, all, parts, shares.data(), stride, tier);

  const std::size_t lanes = patches[0]->lanes(), lane_bytes = patches[0]->lane_bytes();
  const Layout layout = all.extent.layout();
  Sums sums({kTileRows, lane_bytes, layout}, all.extent.output(), lanes, task.count, tier);
  for (const Part& part : parts) {
    sums.add(part.section->lane,
             Bin(part.patch->differences(*part.section), part.patch->extent(*part.section)), 0,
             part.section->count, {&shares[part.share_offset], stride, 0});
  }
  Buffer<std::uint8_t> totals(checked_product(task.count, lanes * lane_bytes));
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    sums.read(lane, [&](std::size_t i) { return &totals[(i * lanes + lane) * lane_bytes]; });
  }
  for (std::size_t i = 0; i < task.count; ++i) {
    std::uint8_t* answer = task.to.answer(all, task.first + i);
    dpf::combine(all.extent.output(), answer, &totals[i * lanes * lane_bytes], all.bytes, answer);
  }
}

/// Returns the keys of a task for a bin, of which the shares of one take so many bytes.
std::size_t keys_together(std::size_t keys, std::size_t share_bytes, unsigned threads) {
  const std::size_t fit = kShareBytes / std::max<std::size_t>(1, share_bytes);
  const std::size_t even = ceil_div(keys, threads * kFewestKeys) * kFewestKeys;
  return std::clamp(std::min(fit / kFewestKeys * kFewestKeys, even), kFewestKeys, kMostKeys);
}

std::vector<Task> divide(std::span<const Patch* const> patches, const Answers& all,
                         unsigned threads) {
  std::vector<Task> tasks;
  for (std::size_t group = 0; group < all.keys.size(); ++group) {
    for (std::uint64_t bin = 0; bin < all.extent.bins().groups()[group].count; ++bin) {
      const BinKeys to = {group, bin};
      std::size_t share_bytes = 0;
      if (parts_of(patches, to, &share_bytes).empty()) continue;
      const std::size_t keys = to.count(all), each = keys_together(keys, share_bytes, threads);
      for (std::size_t first = 0; first < keys; first += each) {
        tasks.push_back({to, first, std::min(each, keys - first)});
      }
    }
  }
  return tasks;
}

void check(std::span<const Patch* const> patches, std::span<const std::uint64_t> ages,
           std::size_t lookups) {
  for (const Patch* patch : patches) {
    if (patch->extent() == patches[0]->extent() &&
        patch->lane_bytes() == patches[0]->lane_bytes()) {
      continue;
    }
    throw Error(ErrorKind::argument, "patches: found those of different tables, expected one");
  }
  if (ages.size() != lookups) {
    throw Error(ErrorKind::argument, "ages: found " + std::to_string(ages.size()) + ", expected " +
                                         std::to_string(lookups) + ", one for each lookup");
  }
  for (const std::uint64_t age : ages) {
    if (age <= patches.size()) continue;
    throw Error(ErrorKind::argument, "ages: found " + std::to_string(age) + ", expected at most " +
                                         std::to_string(patches.size()) +
                                         ", the number of patches");
  }
}

}  // namespace

void add_patches(std::span<const Patch* const> patches, std::span<const std::uint64_t> ages,
                 std::span<const dpf::Keys* const> keys, std::uint8_t* answers, ThreadPool& pool,
                 Tier tier) {
  if (patches.empty()) return;
  const TableExtent& extent = patches[0]->extent();
  check(patches, ages, count_lookups(extent, keys));
  if (ages.empty()) return;
  const Answers all = {extent, ages, keys, answer_bytes(extent.output(), extent.row_bytes()),
                       answers};
  const std::vector<Task> tasks = divide(patches, all, pool.threads());
  with_sums(extent.layout(), [&]<class Sums>() {
    pool.run(tasks.size(),
             [&](std::size_t i, unsigned) { add_changes<Sums>(tasks[i], patches, all, tier); });
  });
}

}  // namespace nescio::pir
