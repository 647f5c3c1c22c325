#include "hash/records.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/math.h"
#include "hash/records_impl.h"

namespace nescio::hash {
namespace {

/// A task has about so many bytes.
constexpr std::size_t kTaskBytes = std::size_t{1} << 16;

void check(const Records& records, unsigned level) {
  if (level > kMaxLevel) {
    throw Error(ErrorKind::argument, "level of records: found " + std::to_string(level) +
                                         ", expected at most " + std::to_string(kMaxLevel));
  }
  if (records.bytes == 0) {
    throw Error(ErrorKind::argument, "bytes of a record: found 0, expected at least 1");
  }
}

std::uint64_t tag_of(unsigned level) {
  char text[] = "NescioL0";
  text[7] = static_cast<char>('0' + level);
  std::uint64_t tag;
  std::memcpy(&tag, text, sizeof(tag));
  return tag;
}

}  // namespace

void hash_records(const Records& records, unsigned level, const Numbers& numbers, std::uint8_t* out,
                  ThreadPool& pool, Tier tier) {
  check(records, level);
  const auto& hash_all = NESCIO_PICK(tier, hash_all);
  // A multiple of every tier's lanes.
  const std::size_t task_records = ceil_div(kTaskBytes, 16 * records.bytes) * 16;
  pool.run(ceil_div(records.count, task_records), [&](std::size_t task, unsigned) {
    const std::size_t first = task * task_records;
    const Records own = {records.data + first * records.bytes,
                         std::min(task_records, records.count - first), records.bytes};
    hash_all(own, tag_of(level), numbers.from(first), out + first * kHashBytes);
  });
}

void hash_records(const Records& records, unsigned level, const Numbers& numbers, std::uint8_t* out,
                  Tier tier) {
  check(records, level);
  NESCIO_PICK(tier, hash_all)(records, tag_of(level), numbers, out);
}

namespace portable {

NESCIO_DEFINE_HASH_ALL

}  // namespace portable
}  // namespace nescio::hash
