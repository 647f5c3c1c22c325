#include "pir/check.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/buffer.h"
#include "base/error.h"
#include "base/secret.h"
#include "hash/records.h"

namespace nescio::pir {
namespace {

using hash::kHashBytes;

/// Lookups that are hashed together: a multiple of every tier's lanes, in a bounded buffer.
constexpr std::size_t kTogether = 64;

/// All ones if a == b, else zero; constant time.
std::uint64_t equal_mask(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t x = a ^ b;
  return ((x | (0 - x)) >> 63) - 1;
}

/// Returns zero exactly if `position` is below `count` and the hash there equals `hash`. Reads all hashes.
std::uint64_t mismatch(const std::uint8_t* hashes, std::size_t count, std::uint64_t position,
                       const std::uint8_t* hash) {
  typedef std::uint64_t Half __attribute__((vector_size(kHashBytes / 2)));  // a register everywhere
  Half expected[2], found[2], low = {}, high = {};
  std::uint64_t present = 0;
  std::memcpy(expected, hash, kHashBytes);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t mask = equal_mask(i, position);
    std::memcpy(found, hashes + i * kHashBytes, kHashBytes);
    low |= (found[0] ^ expected[0]) & mask;
    high |= (found[1] ^ expected[1]) & mask;
    present |= mask;
  }
  const Half differs = low | high;
  return differs[0] | differs[1] | ~present;
}

/// Lookups on their way up the hash tables: the number and the hash of each record.
class Climb {
 public:
  explicit Climb(Tier tier) : tier_(tier), numbers_(kTogether), hashes_(kTogether * kHashBytes) {}

  /// Begins with rows.
  void start(const std::uint64_t* indices, const hash::Records& rows) {
    std::copy_n(indices, rows.count, numbers_.data());
    hash(rows, 0);
  }

  /// Continues with the records of a hash table. Returns zero exactly if they have the hashes below.
  std::uint64_t step(const hash::Records& records, unsigned level) {
    std::uint64_t differs = 0;
    for (std::size_t i = 0; i < records.count; ++i) {
      differs |= mismatch(records.data + i * records.bytes, hash::kArity,
                          numbers_[i] % hash::kArity, &hashes_[i * kHashBytes]);
      numbers_[i] /= hash::kArity;
    }
    hash(records, level);
    return differs;
  }

  /// Returns zero exactly if the first `count` hashes are at their positions among the top hashes, and in
  /// their ranges, which begin with that of index `first`.
  std::uint64_t finish(std::size_t first, std::size_t count, const ProvenRows& found) const {
    std::uint64_t differs = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const bool all = found.ranges.empty();
      const std::uint64_t begin = all ? 0 : found.ranges[2 * (first + i)];
      const std::uint64_t end =
          all ? found.tops.size() / kHashBytes : found.ranges[2 * (first + i) + 1];
      differs |= mismatch(found.tops.data() + begin * kHashBytes, end - begin, numbers_[i] - begin,
                          &hashes_[i * kHashBytes]);
    }
    return differs;
  }

 private:
  void hash(const hash::Records& records, unsigned level) {
    hash::hash_records(records, level, {numbers_.data(), 0}, hashes_.data(), tier_);
  }

  Tier tier_;
  SecretBuffer<std::uint64_t> numbers_;
  SecretBuffer<std::uint8_t> hashes_;
};

void check_shapes(const ProvenRows& found) {
  if (found.records.size() > hash::kMaxLevel) {
    throw Error(ErrorKind::argument, "hash tables: found " + std::to_string(found.records.size()) +
                                         ", expected at most " + std::to_string(hash::kMaxLevel));
  }
  if (found.tops.size() % kHashBytes != 0) {
    throw Error(ErrorKind::argument, "bytes of top hashes: found " +
                                         std::to_string(found.tops.size()) +
                                         ", expected a multiple of " + std::to_string(kHashBytes));
  }
  if (found.ranges.empty()) return;
  bool valid = found.ranges.size() == 2 * found.indices.size();
  for (std::size_t i = 0; valid && i < found.ranges.size(); i += 2) {
    valid = found.ranges[i] <= found.ranges[i + 1] &&
            found.ranges[i + 1] <= found.tops.size() / kHashBytes;
  }
  if (valid) return;
  throw Error(ErrorKind::argument,
              "ranges of top hashes: expected a first one and an end for each index, among " +
                  std::to_string(found.tops.size() / kHashBytes) + " hashes");
}

}  // namespace

bool check_rows(const ProvenRows& found, Tier tier) {
  check_shapes(found);
  Climb climb(tier);
  std::uint64_t differs = 0;
  for (std::size_t first = 0; first < found.indices.size(); first += kTogether) {
    const std::size_t count = std::min(kTogether, found.indices.size() - first);
    climb.start(&found.indices[first],
                {found.rows + first * found.row_bytes, count, found.row_bytes});
    for (unsigned level = 1; level <= found.records.size(); ++level) {
      const std::uint8_t* records = found.records[level - 1] + first * hash::kHashRowBytes;
      differs |= climb.step({records, count, hash::kHashRowBytes}, level);
    }
    differs |= climb.finish(first, count, found);
  }
  return declassify(differs) == 0;
}

}  // namespace nescio::pir
