// Tests that the emulated device computes what a GPU computes, that it refuses what is undefined on a
// GPU, and, under the sanitizers, that kernels access only their memory.

#include <cstdint>
#include <cstring>
#include <random>
#include <stdexcept>
#include <vector>

#include "check.h"
#include "dpf/generate.h"
#include "dpf/shares.h"
#include "gpu/emulated/device.h"
#include "pir/answer.h"
#include "pir/gpu/answer_gpu.h"
#include "prg/generator_gpu.h"

namespace nescio {
namespace {

std::mt19937_64 rng(20261122);  // test data, never keys

template <class Work>
void run_block(gpu::ThreadOrder turns, Work work) {
  gpu::FiberTeam team(64, 1024, turns);
  team.run({0, 0}, [&](gpu::EmulatedBlock& block) { work(block); });
}

template <class Work>
bool is_refused(Work work) {
  try {
    run_block(gpu::ThreadOrder::forwards, work);
  } catch (const std::logic_error&) {
    return true;
  }
  return false;
}

void test_barriers() {
  for (auto turns : {gpu::ThreadOrder::forwards, gpu::ThreadOrder::backwards}) {
    std::vector<unsigned> seen(64);
    run_block(turns, [&](gpu::EmulatedBlock& block) {
      auto* shared = reinterpret_cast<unsigned*>(block.shared());
      shared[block.thread()] = block.thread();
      block.sync();
      seen[block.thread()] = shared[63 - block.thread()];
    });
    for (unsigned i = 0; i < 64; ++i) CHECK(seen[i] == 63 - i);
  }
}

void test_what_a_card_does_not_define() {
  CHECK(is_refused([](gpu::EmulatedBlock& block) {
    if (block.thread() != 7) block.sync();  // one thread never arrives
  }));
  CHECK(is_refused([](gpu::EmulatedBlock& block) {
    if (block.lane() < 16) {
      block.ballot(true);
    } else {
      block.shuffle_xor(1, 1);  // half a warp is elsewhere
    }
  }));
}

void test_data_races_are_detected() {
  std::uint32_t last[2] = {};
  for (auto turns : {gpu::ThreadOrder::forwards, gpu::ThreadOrder::backwards}) {
    run_block(turns, [&](gpu::EmulatedBlock& block) {
      last[turns == gpu::ThreadOrder::forwards ? 0 : 1] = block.thread();
    });
  }
  CHECK(last[0] != last[1]);
}

void test_copies_happen_when_they_are_waited_for() {
  alignas(16) std::uint8_t from[16], to[16] = {};
  std::memset(from, 7, sizeof(from));
  run_block(gpu::ThreadOrder::forwards, [&](gpu::EmulatedBlock& block) {
    if (block.thread() != 0) return;
    block.copy_async(to, from);
    block.commit_copies();
    block.commit_copies();
    block.wait_copies<2>();
    CHECK(to[0] == 0);
    block.wait_copies<1>();
    CHECK(to[0] == 7);
  });
}

void test_shuffles_and_votes() {
  run_block(gpu::ThreadOrder::backwards, [&](gpu::EmulatedBlock& block) {
    CHECK(block.shuffle_xor(block.thread(), 5) == (block.thread() ^ 5));
    CHECK(block.ballot(block.lane() % 3 == 0) == 0x49249249u);
  });
}

/// Multiplies row-major A (16 x 32 bytes) and column-major B (32 bytes x 8) by a warp, and compares with
/// the definition of the product.
template <class Multiply, class Product>
void test_matrix_instruction(Multiply multiply, Product product) {
  std::uint32_t a[16][8], b[8][8], c[16][8], found[16][8];
  for (auto& row : a)
    for (auto& word : row) word = static_cast<std::uint32_t>(rng());
  for (auto& row : b)
    for (auto& word : row) word = static_cast<std::uint32_t>(rng());
  for (auto& row : c)
    for (auto& word : row) word = static_cast<std::uint32_t>(rng());
  run_block(gpu::ThreadOrder::forwards, [&](gpu::EmulatedBlock& block) {
    const unsigned g = block.lane() / 4, t = block.lane() % 4;
    std::uint32_t sums[4] = {c[g][2 * t], c[g][2 * t + 1], c[g + 8][2 * t], c[g + 8][2 * t + 1]};
    multiply(block, sums, {a[g][t], a[g + 8][t], a[g][4 + t], a[g + 8][4 + t]},
             {b[g][t], b[g][4 + t]});
    if (block.warp() != 0) return;
    for (unsigned i = 0; i < 4; ++i) found[g + 8 * (i / 2)][2 * t + i % 2] = sums[i];
  });
  for (unsigned m = 0; m < 16; ++m) {
    for (unsigned n = 0; n < 8; ++n) {
      std::uint32_t sum = c[m][n];
      for (unsigned w = 0; w < 8; ++w) sum += product(a[m][w], b[n][w]);
      CHECK(found[m][n] == sum);
    }
  }
}

void test_matrix_instructions() {
  using Four = const std::uint32_t (&)[4];
  using Two = const std::uint32_t (&)[2];
  test_matrix_instruction([](gpu::EmulatedBlock& block, std::uint32_t (&c)[4], Four a,
                             Two b) { block.multiply_bits(c, a, b); },
                          [](std::uint32_t x, std::uint32_t y) {
                            std::uint32_t ones = 0;
                            for (std::uint32_t z = x & y; z != 0; z &= z - 1) ++ones;
                            return ones;
                          });
  test_matrix_instruction([](gpu::EmulatedBlock& block, std::uint32_t (&c)[4], Four a,
                             Two b) { block.multiply_bytes(c, a, b); },
                          [](std::uint32_t x, std::uint32_t y) {
                            return (x & 255) * (y & 255) + (x >> 8 & 255) * (y >> 8 & 255) +
                                   (x >> 16 & 255) * (y >> 16 & 255) + (x >> 24) * (y >> 24);
                          });
}

/// Compares every generator's GPU code with the portable tier.
void test_generators() {
  const auto table = prg::aes_table();
  const prg::GpuTables tables = {prg::aes_round_keys(), table.data()};
  for (unsigned id = 1; prg::is_generator(static_cast<std::uint8_t>(id)); ++id) {
    const auto& portable = prg::generator(static_cast<prg::GeneratorId>(id), Tier::portable);
    prg::with_gpu_generator(portable.id, [&]<class G>() {
      CHECK(G::kId == portable.id && G::kRadixBits == portable.radix_bits);
      gpu::FiberTeam team(32, G::kSharedBytes, gpu::ThreadOrder::forwards);
      team.run({0, 0}, [&](gpu::EmulatedBlock& block) {
        const G generator(block, tables, block.shared(), 32);
        const Block s = {rng(), rng()};
        Block own[4] = {}, expected[4] = {};
        generator.children(s, own);
        portable.expand(&s, 1, prg::kNoCorrections, expected);
        CHECK(std::memcmp(own, expected, sizeof(own)) == 0);
        generator.leaf(s, own);
        portable.leaves(&s, 1, prg::kNoCorrections, expected);
        CHECK(std::memcmp(own, expected, sizeof(own)) == 0);
      });
    });
  }
}

struct Case {
  std::uint64_t rows;
  std::size_t row_bytes;
  std::size_t keys;
};

void check_answers(const Case& of, dpf::Output output, prg::GeneratorId generator) {
  std::vector<std::uint8_t> rows(of.rows * of.row_bytes);
  for (auto& byte : rows) byte = static_cast<std::uint8_t>(rng());
  const dpf::Shape shape = {of.rows, output, generator};
  std::vector<std::uint64_t> points(of.keys);
  for (auto& point : points) point = rng() % of.rows;
  const std::vector<Block> payloads(of.keys, Block{1, 0});
  std::vector<std::uint8_t> bytes[2];
  for (auto& party : bytes) party.resize(of.keys * shape.key_bytes());
  dpf::generate(shape, points, payloads, bytes[0].data(), bytes[1].data(), Tier::portable);
  const dpf::Keys keys(bytes[1].data(), of.keys, shape.key_bytes());

  ThreadPool pool(1);
  const pir::TableExtent extent(pir::Bins({{1, of.rows, 1}}), of.row_bytes, output);
  std::vector<std::uint8_t> table(extent.bytes());
  pir::store_rows(extent, rows.data(), 0, of.rows, table.data(), pool, Tier::portable);
  std::vector<std::uint8_t> expected(of.keys * pir::answer_bytes(output, of.row_bytes));
  const dpf::Keys* own = &keys;
  pir::answer({table.data(), extent}, {&own, 1}, expected.data(), pool, Tier::portable);
  for (unsigned device = 0; device < gpu::EmulatedDevice::count(); ++device) {
    pir::GpuTable<gpu::EmulatedDevice> on_device(device, extent, {0, of.rows});
    on_device.store(0, rows.data(), of.rows,
                    device == 1 ? std::optional<unsigned>(1) : std::nullopt);
    for (std::size_t strategy = 0; strategy < std::size(pir::kStrategies); ++strategy) {
      std::vector<std::uint8_t> found(expected.size());
      on_device.answer({&own, 1}, {static_cast<pir::Strategy>(strategy), 64}, found.data());
      CHECK(found == expected);
    }
  }
}

void test_answers() {
  for (auto output :
       {dpf::Output::bit, dpf::Output::u8, dpf::Output::u32, dpf::Output::u64, dpf::Output::u128}) {
    for (auto generator : {prg::GeneratorId::aes128, prg::GeneratorId::chacha20}) {
      check_answers({1, 1, 1}, output, generator);
      check_answers({700, 21, 3}, output, generator);
    }
  }
  check_answers({1200, 5, 70}, dpf::Output::bit, prg::GeneratorId::chacha20);
}

/// Two devices hold a table with bins, one of them from the middle of a bin on: their answers add up.
void test_bins(dpf::Output output) {
  const pir::TableExtent extent(pir::Bins({{3, 60, 2}, {1, 1100, 1}, {2, 1, 1}}), 9, output);
  std::vector<std::uint8_t> rows(extent.rows() * 9), table(extent.bytes());
  for (auto& byte : rows) byte = static_cast<std::uint8_t>(rng());
  ThreadPool pool(1);
  pir::store_rows(extent, rows.data(), 0, extent.rows(), table.data(), pool, Tier::portable);
  std::vector<dpf::Keys> keys;
  for (const pir::BinGroup& group : extent.bins().groups()) {
    const dpf::Shape shape = {group.rows, output, prg::GeneratorId::chacha20};
    const std::size_t count = 2 * group.count * group.keys;
    const std::vector<std::uint64_t> points(count, group.rows - 1);
    const std::vector<Block> payloads(count, Block{1, 0});
    std::vector<std::uint8_t> bytes(count * shape.key_bytes()), others(bytes.size());
    dpf::generate(shape, points, payloads, bytes.data(), others.data(), Tier::portable);
    keys.emplace_back(bytes.data(), count, shape.key_bytes());
  }
  const std::vector<const dpf::Keys*> groups = {&keys[0], &keys[1], &keys[2]};
  std::vector<std::uint8_t> expected(2 * extent.bins().slots() * pir::answer_bytes(output, 9));
  pir::answer({table.data(), extent}, groups, expected.data(), pool, Tier::portable);
  constexpr std::uint64_t kFirst = 180 + 512;  // a tile of the large bin
  pir::GpuTable<gpu::EmulatedDevice> low(0, extent, {0, kFirst});
  pir::GpuTable<gpu::EmulatedDevice> high(1, extent, {kFirst, extent.rows() - kFirst});
  low.store(0, rows.data(), kFirst, std::nullopt);
  high.store(0, rows.data() + kFirst * 9, extent.rows() - kFirst, std::nullopt);
  for (std::size_t strategy = 0; strategy < std::size(pir::kStrategies); ++strategy) {
    std::vector<std::uint8_t> found(expected.size()), other(expected.size());
    low.answer(groups, {static_cast<pir::Strategy>(strategy), 64}, found.data());
    high.answer(groups, {static_cast<pir::Strategy>(strategy), 64}, other.data());
    dpf::combine(output, found.data(), other.data(), found.size(), found.data());
    CHECK(found == expected);
  }
}

void test_probes() {
  const pir::TableExtent extent(pir::Bins({{1, 600, 1}}), 8, dpf::Output::bit);
  pir::GpuTable<gpu::EmulatedDevice> on_device(0, extent, {0, 600});
  const std::vector<std::uint8_t> rows(600 * 8);
  on_device.store(0, rows.data(), 600, std::nullopt);
  CHECK(on_device.seconds_per_pass() > 0);
  CHECK(on_device.products_per_second() > 0);
  CHECK(on_device.calls_per_second(prg::GeneratorId::chacha20, true) > 0);
}

}  // namespace
}  // namespace nescio

int main() {
  using namespace nescio;
  test_barriers();
  test_what_a_card_does_not_define();
  test_data_races_are_detected();
  test_copies_happen_when_they_are_waited_for();
  test_shuffles_and_votes();
  test_matrix_instructions();
  test_generators();
  test_answers();
  test_bins(dpf::Output::bit);
  test_bins(dpf::Output::u32);
  test_probes();
}
