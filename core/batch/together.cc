#include "batch/together.h"

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "batch/sets.h"

namespace nescio::batch {
namespace {

constexpr std::int32_t kNone = -1;

/// The numbers of the rows of one set: a hash table with linear probing.
class Numbers {
 public:
  void fill(std::span<const std::int64_t> rows) {
    const std::size_t size = std::bit_ceil(2 * rows.size() + 2);
    shift_ = 64 - std::countr_zero(size);
    mask_ = size - 1;
    entries_.assign(size, {0, kNone});
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Entry& entry = entries_[find(rows[i])];
      if (entry.number == kNone) entry = {rows[i], static_cast<std::int32_t>(i)};
    }
  }

  /// Returns the number of a row, -1 if it is not in the set.
  std::int32_t operator[](std::int64_t row) const { return entries_[find(row)].number; }

 private:
  struct Entry {
    std::int64_t row;
    std::int32_t number;
  };

  std::size_t find(std::int64_t row) const {
    std::size_t at = static_cast<std::uint64_t>(row) * 0x9E3779B97F4A7C15u >> shift_;
    while (entries_[at].number != kNone && entries_[at].row != row) at = (at + 1) & mask_;
    return at;
  }

  std::vector<Entry> entries_;
  std::size_t mask_ = 0;
  int shift_ = 0;
};

void check_lists(std::span<const std::int64_t> lists, std::int64_t count) {
  for (const std::int64_t list : lists) {
    if (list >= kNone && list < count) continue;
    throw Error(ErrorKind::argument, "a list of neighbors: found " + std::to_string(list) +
                                         ", expected -1 to " + std::to_string(count - 1));
  }
}

}  // namespace

void find_together(std::span<const std::int64_t> offsets, std::span<const std::int64_t> rows,
                   std::span<const std::int64_t> lists, std::span<const std::int64_t> neighbors,
                   std::size_t width, std::int32_t* out, ThreadPool& pool) {
  check_offsets(offsets, rows.size());
  if (lists.size() != rows.size()) {
    throw Error(ErrorKind::argument, "lists of neighbors: found " + std::to_string(lists.size()) +
                                         ", expected " + std::to_string(rows.size()) +
                                         ", one for each access");
  }
  if (width == 0) return;
  check_lists(lists, static_cast<std::int64_t>(neighbors.size() / width));
  for_sets(offsets.size() - 1, pool, [&](std::size_t first, std::size_t end, unsigned) {
    Numbers numbers;
    for (std::size_t set = first; set < end; ++set) {
      const auto begin = static_cast<std::size_t>(offsets[set]);
      const auto stop = static_cast<std::size_t>(offsets[set + 1]);
      numbers.fill(rows.subspan(begin, stop - begin));
      for (std::size_t access = begin; access < stop; ++access) {
        std::int32_t* found = out + access * width;
        const std::int64_t list = lists[access];
        for (std::size_t i = 0; i < width; ++i) {
          const std::int64_t near =
              list < 0 ? kNone : neighbors[static_cast<std::size_t>(list) * width + i];
          found[i] = near < 0 ? kNone : numbers[near];
        }
      }
    }
  });
}

}  // namespace nescio::batch
