// Answers of older versions under the sanitizers: those of the current table and of patches are the answers
// of the table before, in every tier, for lookups of several ages. Python tests compare the results with
// the executable specification.

#include "pir/patch/patch.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/cpu.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "check.h"
#include "dpf/generate.h"
#include "pir/answer.h"
#include "pir/patch/patched.h"

namespace {

using namespace nescio;
using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kRowBytes = 20;

/// Keys of lookups to each group of bins.
struct Keys {
  Keys(const pir::TableExtent& extent, std::size_t lookups) {
    for (const pir::BinGroup& group : extent.bins().groups()) {
      const dpf::Shape shape = {group.rows, extent.output(), prg::GeneratorId::chacha8};
      const std::size_t count = lookups * group.count * group.keys;
      std::vector<std::uint64_t> points;
      for (std::size_t i = 0; i < count; ++i) points.push_back(i * 37 % group.rows);
      const std::vector<Block> ones(count, Block{1, 0});
      Bytes keys(count * shape.key_bytes()), others(keys.size());
      dpf::generate(shape, points, ones, keys.data(), others.data(), Tier::portable);
      parsed.emplace_back(keys.data(), count, shape.key_bytes());
    }
    for (const dpf::Keys& own : parsed) pointers.push_back(&own);
  }

  std::vector<dpf::Keys> parsed;
  std::vector<const dpf::Keys*> pointers;
};

Bytes stored(const pir::TableExtent& extent, const Bytes& rows, ThreadPool& pool) {
  Bytes memory(extent.bytes());
  pir::store_rows(extent, rows.data(), 0, extent.rows(), memory.data(), pool, Tier::portable);
  return memory;
}

Bytes answers_of(const pir::TableExtent& extent, const Bytes& rows, const Keys& keys,
                 ThreadPool& pool) {
  const Bytes memory = stored(extent, rows, pool);
  const std::size_t lookups = pir::count_lookups(extent, keys.pointers);
  Bytes answers(lookups * extent.bins().slots() *
                pir::answer_bytes(extent.output(), extent.row_bytes()));
  pir::answer({memory.data(), extent}, keys.pointers, answers.data(), pool, Tier::portable);
  return answers;
}

/// Changes some bytes of every `step`-th row; returns the patch.
pir::Patch change(const pir::TableExtent& extent, Bytes& rows, std::size_t step,
                  std::size_t lane_bytes, Tier tier) {
  std::vector<std::uint64_t> indices;
  Bytes before, after;
  for (std::uint64_t row = step / 2; row < extent.rows(); row += step) {
    std::uint8_t* own = &rows[row * kRowBytes];
    before.insert(before.end(), own, own + kRowBytes);
    own[row % kRowBytes] ^= 0x5A;
    if (step % 2 == 0) own[kRowBytes - 1] ^= 0xFF;
    after.insert(after.end(), own, own + kRowBytes);
    indices.push_back(row);
  }
  return {extent, indices, before.data(), after.data(), lane_bytes, tier};
}

void check_ages(const pir::TableExtent& extent, std::size_t lane_bytes, std::size_t lookups,
                ThreadPool& pool, Tier tier) {
  const Keys keys(extent, lookups);
  std::vector<Bytes> versions = {Bytes(extent.rows() * kRowBytes, 7)};
  std::vector<pir::Patch> patches;
  for (const std::size_t step : {1u, 100'000u, 3u}) {  // all rows, few or none, every third
    versions.push_back(versions.back());
    patches.push_back(change(extent, versions.back(), step, lane_bytes, tier));
  }
  std::reverse(versions.begin(), versions.end());
  const std::vector<const pir::Patch*> newest_first = {&patches[2], &patches[1], &patches[0]};
  std::vector<std::uint64_t> ages;
  for (std::size_t i = 0; i < lookups; ++i) ages.push_back(i * 7 % 4);
  Bytes found = answers_of(extent, versions[0], keys, pool);
  pir::add_patches(newest_first, ages, keys.pointers, found.data(), pool, tier);
  Bytes together(found.size());
  pir::answer_versions({stored(extent, versions[0], pool).data(), extent}, newest_first, ages,
                       keys.pointers, together.data(), pool, tier);
  CHECK(together == found);
  const std::size_t each = found.size() / lookups;
  for (std::size_t age = 0; age < 4; ++age) {
    const Bytes expected = answers_of(extent, versions[age], keys, pool);
    for (std::size_t i = 0; i < lookups; ++i) {
      if (ages[i] != age) continue;
      CHECK(std::memcmp(&found[i * each], &expected[i * each], each) == 0);
    }
  }
}

void test_ages(Tier tier) {
  for (unsigned threads : {1u, 3u}) {
    ThreadPool pool(threads);
    for (auto output : {dpf::Output::bit, dpf::Output::u32, dpf::Output::u64}) {
      const std::size_t whole = pir::answer_bytes(output, kRowBytes);
      for (const std::vector<pir::BinGroup>& groups :
           {std::vector<pir::BinGroup>{{1, 1'300, 1}}, {{3, 1, 1}}, {{1, 513, 2}, {5, 60, 1}}}) {
        const pir::TableExtent extent(pir::Bins(groups), kRowBytes, output);
        for (const std::size_t lane : {whole, std::size_t{8}}) {
          for (const std::size_t lookups : {1u, 5u, 70u}) {
            check_ages(extent, lane, lookups, pool, tier);
          }
        }
      }
    }
  }
}

}  // namespace

int main() {
  for (Tier tier : supported_tiers()) {
    test_ages(tier);
    std::printf("tier %s: good\n", tier_name(tier));
  }
}
