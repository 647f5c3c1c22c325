// Tables with bins under the sanitizers: each bin is in the memory of a table of its own and has its
// answers, in every tier, with bins of one row and around a tile, and with few keys and many. Python
// tests compare the results with the executable specification.

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/cpu.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "check.h"
#include "dpf/generate.h"
#include "pir/answer.h"

namespace {

using namespace nescio;
using Bytes = std::vector<std::uint8_t>;
using Groups = std::vector<pir::BinGroup>;

/// Serialized keys, all of one length, for varied points.
Bytes make_keys(const dpf::Shape& shape, std::size_t count) {
  std::vector<std::uint64_t> points;
  for (std::size_t i = 0; i < count; ++i) points.push_back(i * 37 % shape.domain);
  const std::vector<Block> ones(count, Block{1, 0});
  Bytes keys(count * shape.key_bytes()), others(keys.size());
  dpf::generate(shape, points, ones, keys.data(), others.data(), Tier::portable);
  return keys;
}

Bytes varied(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(i * 37 >> 3);
  return bytes;
}

/// A table with bins and one for each bin, with the same rows.
struct Cut {
  Cut(const Groups& groups, std::size_t row_bytes, dpf::Output output, ThreadPool& pool, Tier tier)
      : extent(pir::Bins(groups), row_bytes, output), plain(varied(extent.rows() * row_bytes)) {
    memory = Bytes(extent.bytes());
    pir::store_rows(extent, plain.data(), 0, extent.rows(), memory.data(), pool, tier);
  }

  pir::TableExtent alone(std::size_t group) const {
    return {pir::Bins({{1, extent.bins().groups()[group].rows, 1}}), extent.row_bytes(),
            extent.output()};
  }

  pir::TableExtent extent;
  Bytes plain;
  Bytes memory;
};

/// Answers one bin of a group from a table of its own, lookup by lookup.
Bytes answer_alone(const Cut& table, std::size_t group, std::uint64_t bin, const Bytes& all,
                   const dpf::Shape& shape, std::size_t lookups) {
  ThreadPool pool(1);
  const pir::BinGroup& size = table.extent.bins().groups()[group];
  const pir::TableExtent extent = table.alone(group);
  Bytes memory(extent.bytes()), own;
  const std::uint64_t first = table.extent.bins().row({group, bin, 0});
  pir::store_rows(extent, table.plain.data() + first * extent.row_bytes(), 0, size.rows,
                  memory.data(), pool, Tier::portable);
  CHECK(std::equal(memory.begin(), memory.end(),
                   table.memory.data() + table.extent.offset(group, bin)));
  const std::size_t run = size.keys * shape.key_bytes();
  for (std::size_t lookup = 0; lookup < lookups; ++lookup) {
    const std::uint8_t* from = all.data() + (lookup * size.count + bin) * run;
    own.insert(own.end(), from, from + run);
  }
  const dpf::Keys keys(own.data(), lookups * size.keys, shape.key_bytes());
  Bytes answers(keys.size() * pir::answer_bytes(shape.output, extent.row_bytes()));
  const dpf::Keys* group_keys = &keys;
  pir::answer({memory.data(), extent}, {&group_keys, 1}, answers.data(), pool, Tier::portable);
  return answers;
}

void check_answers(const Cut& table, std::size_t lookups, ThreadPool& pool, Tier tier) {
  const pir::Bins& bins = table.extent.bins();
  const std::size_t bytes = pir::answer_bytes(table.extent.output(), table.extent.row_bytes());
  std::vector<dpf::Shape> shapes;
  std::vector<Bytes> serialized;
  std::vector<dpf::Keys> parsed;
  for (const pir::BinGroup& group : bins.groups()) {
    shapes.push_back({group.rows, table.extent.output(), prg::GeneratorId::chacha8});
    const std::size_t count = lookups * group.count * group.keys;
    serialized.push_back(make_keys(shapes.back(), count));
    parsed.emplace_back(serialized.back().data(), count, shapes.back().key_bytes());
  }
  std::vector<const dpf::Keys*> keys;
  for (const dpf::Keys& own : parsed) keys.push_back(&own);
  CHECK(pir::count_lookups(table.extent, keys) == lookups);
  Bytes answers(lookups * bins.slots() * bytes);
  pir::answer({table.memory.data(), table.extent}, keys, answers.data(), pool, tier);
  for (std::size_t g = 0; g < shapes.size(); ++g) {
    const pir::BinGroup& group = bins.groups()[g];
    const std::size_t run = group.keys * bytes;
    for (std::uint64_t bin = 0; bin < group.count; ++bin) {
      const Bytes expected = answer_alone(table, g, bin, serialized[g], shapes[g], lookups);
      for (std::size_t lookup = 0; lookup < lookups; ++lookup) {
        const std::size_t slot = lookup * bins.slots() + bins.first_slot(g) + bin * group.keys;
        CHECK(std::memcmp(&answers[slot * bytes], &expected[lookup * run], run) == 0);
      }
    }
  }
}

const Groups kTables[] = {{{3, 1, 1}},
                          {{1, 511, 1}, {2, 512, 2}, {2, 513, 1}},
                          {{1, 40, 3}, {30, 130, 1}},
                          {{2, 2'100, 1}}};

void test_answers(Tier tier) {
  for (unsigned threads : {1u, 3u}) {
    ThreadPool pool(threads);
    for (auto output : {dpf::Output::bit, dpf::Output::u8, dpf::Output::u64}) {
      for (const Groups& groups : kTables) {
        for (std::size_t lookups : {1u, 6u, 60u}) {
          if (lookups == 60 && output == dpf::Output::u64) continue;  // slow
          check_answers(Cut(groups, 9, output, pool, tier), lookups, pool, tier);
        }
      }
    }
    check_answers(Cut({{2, 700, 150}}, 9, dpf::Output::bit, pool, tier), 2, pool, tier);
  }
}

void test_changes(Tier tier) {
  ThreadPool pool(2);
  for (auto output : {dpf::Output::bit, dpf::Output::u32}) {
    for (const Groups& groups : kTables) {
      Cut table(groups, 20, output, pool, tier);
      const std::uint64_t rows = table.extent.rows();
      std::vector<std::uint64_t> indices = {rows - 1, 0, rows - 1};
      for (std::uint64_t i = 0; i < rows; i += 3) indices.push_back(i * 37 % rows);
      const Bytes changed = varied(indices.size() * 20);
      for (std::size_t i = 0; i < indices.size(); ++i) {
        std::copy_n(&changed[i * 20], 20, &table.plain[indices[i] * 20]);
      }
      const pir::RowChanges changes(indices, changed.data(), 20, table.extent.bins(), pool);
      pir::replace_rows(table.extent, changes, table.memory.data(), pool, tier);
      Bytes found(table.plain.size());
      pir::load_range(table.extent, table.memory.data(), 0, rows, found.data(), pool, tier);
      CHECK(found == table.plain);
      const std::uint64_t last = rows - 1;
      pir::load_rows(table.extent, table.memory.data(), {&last, 1}, found.data(), tier);
      CHECK(std::memcmp(found.data(), &table.plain[last * 20], 20) == 0);
    }
  }
}

void test_places(Tier) {
  for (const Groups& groups : kTables) {
    const pir::Bins bins(groups);
    std::uint64_t tile = 0;
    for (std::uint64_t row = 0; row < bins.rows(); ++row) {
      const pir::Bins::Place at = bins.place(row);
      CHECK(bins.row(at) == row);
      if (row != 0 && at.row % pir::kTileRows == 0) ++tile;
      CHECK(bins.tile_of(at) == tile);
      if (at.row % pir::kTileRows == 0) CHECK(bins.row(bins.tile(tile)) == row);
    }
    CHECK(bins.tiles() == tile + 1);
  }
  CHECK_THROWS(pir::Bins(Groups{}), ErrorKind::argument);
  CHECK_THROWS(pir::Bins({{1, pir::Bins::kMaxRows + 1, 1}}), ErrorKind::argument);
  CHECK_THROWS(pir::Bins({{1, 5, 1}, {1, 0, 1}}), ErrorKind::argument);
}

}  // namespace

int main() {
  for (Tier tier : supported_tiers()) {
    for (auto test : {test_answers, test_changes, test_places}) test(tier);
    std::printf("tier %s: good\n", tier_name(tier));
  }
}
