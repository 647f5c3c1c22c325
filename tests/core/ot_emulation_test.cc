// Oblivious transfer on the emulated devices, under the sanitizers: kernels stay within their
// memory at sizes where tiles, segments and groups end early, and both parties' blocks differ by
// delta at one leaf per tree. The results are compared with the specifications in tests/ot.

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include "check.h"
#include "gpu/emulated/device.h"
#include "ot/gpu/device_gpu.h"

namespace nescio {
namespace {

using OtDevice = ot::OtDevice<gpu::EmulatedDevice>;
using Blocks = OtDevice::Blocks;

constexpr std::array<std::uint8_t, 16> kSeed = {1, 2, 3};

std::mt19937_64 rng(20261122);  // test data, never keys

std::vector<Block> random_blocks(std::size_t count) {
  std::vector<Block> blocks(count);
  for (Block& block : blocks) block = {rng(), rng()};
  return blocks;
}

std::vector<Block> to_host(const Blocks& blocks) {
  std::vector<Block> host(blocks.size());
  blocks.download(host.data());
  return host;
}

/// The leaves of both parties, with a random choice per level.
struct Leaves {
  Leaves(OtDevice& device, std::size_t trees, unsigned depth, ot::TreeWay way)
      : delta{rng() | 1, rng()}, sums(trees * depth) {
    const auto seeds = random_blocks(trees);
    sender = device.grow_trees(seeds, depth, delta, {}, sums.data(), way);
    std::vector<std::uint8_t> choices(sums.size());
    std::vector<Block> sides = sums;
    for (std::size_t i = 0; i < sides.size(); ++i) {
      choices[i] = rng() & 1;
      sides[i] ^= block_mask(choices[i]) & delta;
    }
    receiver = device.puncture_trees(sides, choices, depth, {});
  }

  Block delta;
  std::vector<Block> sums;
  std::optional<Blocks> sender, receiver;
};

/// The number of blocks that differ by delta and have a choice of 1; checks that the others are
/// equal.
std::size_t count_transfers(OtDevice& device, const Leaves& leaves, const Blocks& r,
                            const Blocks& t) {
  const auto sender = to_host(r), receiver = to_host(t);
  std::vector<std::uint8_t> choices(receiver.size());
  device.low_bits(t, choices.data());
  std::size_t ones = 0;
  for (std::size_t i = 0; i < sender.size(); ++i) {
    const Block expected = sender[i] ^ (block_mask(choices[i]) & leaves.delta);
    CHECK(control_bit(sender[i]) == 0 && receiver[i] == expected);
    ones += choices[i];
  }
  return ones;
}

void test_trees(OtDevice& device) {
  for (auto way : {ot::TreeWay::fused, ot::TreeWay::separate, ot::TreeWay::single}) {
    for (const auto& [trees, depth] : {std::pair{1u, 1u}, {3u, 3u}, {37u, 2u}, {2u, 11u}}) {
      const Leaves leaves(device, trees, depth, way);
      CHECK(count_transfers(device, leaves, *leaves.sender, *leaves.receiver) == trees);
    }
  }
}

void test_codes(OtDevice& device) {
  const Leaves leaves(device, 5, 7, ot::TreeWay::fused);
  const auto short_secret = random_blocks(77);
  const Blocks seeds = device.upload(short_secret);
  const ot::Seed seed(kSeed);
  std::vector<std::vector<Block>> found;
  for (auto way : {ot::PrimalWay::fused, ot::PrimalWay::words, ot::PrimalWay::separate}) {
    const Blocks noise = device.upload(std::vector<Block>(601));
    device.encode_primal(noise.part(1, 599), seeds, seed, 5, way);
    found.push_back(to_host(noise));
  }
  CHECK(found[0] == found[1] && found[0] == found[2]);
  CHECK(found[0].front() == Block{} && found[0].back() == Block{});

  for (std::uint64_t segment : {25, 75, 200, 1000}) {
    const std::vector<Blocks> parts = {*leaves.sender, leaves.sender->part(0, 2)};
    const std::vector<Blocks> others = {*leaves.receiver, leaves.receiver->part(0, 2)};
    const Blocks r = device.join(parts), t = device.join(others);
    device.encode_ec(r, seed, {segment});
    device.encode_ec(t, seed, {segment});
    const Blocks own = r.part(0, 321);
    CHECK(count_transfers(device, leaves, own, t.part(0, 321)) > 0);
    found.push_back(to_host(own));
  }
  for (std::size_t i = 4; i < found.size(); ++i) CHECK(found[i] == found[3]);
}

void test_sums(OtDevice& device) {
  const auto blocks = random_blocks(1111);
  const Blocks placed = device.upload(blocks);
  const ot::Seed seed(kSeed);
  const Block all = device.chi_sum(placed, seed, 0);
  const Block parts = device.chi_sum(placed.part(0, 600), seed, 0) ^
                      device.chi_sum(placed.part(600, 511), seed, 600);
  CHECK(all == parts);
  const std::uint64_t position = 7;
  Block chi;
  device.chi_at({&position, 1}, seed, &chi);
  const std::vector<Block> one = {{1, 0}};
  CHECK(device.chi_sum(device.upload(one), seed, position) == chi);

  const Block delta = {3, 4};
  const auto hashed = to_host(device.hash(placed, 9, 1, {}, delta));
  std::vector<Block> moved = blocks;
  for (Block& block : moved) block ^= delta;
  CHECK(to_host(device.hash(device.upload(moved), 9, 1, {}, {})) == hashed);

  std::vector<std::uint8_t> rows(128 * 3);
  rows[2 * 3 + 1] = 0x10;  // bit 12 of row 2
  const auto columns = to_host(device.transpose_bits(rows.data(), 3));
  for (std::size_t i = 0; i < 24; ++i) CHECK((columns[i] == Block{i == 12 ? 4u : 0u, 0}));
}

void test_memory() {
  gpu::MemoryPool<gpu::EmulatedDevice> memory(0);
  const auto held = [&] { return memory.device().memory_use().now; };
  constexpr std::size_t kBytes = 8 << 20;
  const auto first = memory.allocate(kBytes);
  memory.release(first, false);
  CHECK(held() == kBytes);
  for (std::size_t bytes :
       {2 * kBytes, kBytes / 8}) {  // the kept memory is too small for one, too large for the other
    const auto other = memory.allocate(bytes);
    CHECK(other.data != first.data);
    memory.release(other, false);
  }
  CHECK(memory.allocate(kBytes - 5).data == first.data);
  const std::size_t before = held();
  memory.release(first, true);  // others may still be reading it
  CHECK(held() == before - kBytes);
}

}  // namespace
}  // namespace nescio

int main() {
  using namespace nescio;
  test_memory();
  for (unsigned number = 0; number < gpu::EmulatedDevice::count(); ++number) {
    OtDevice device(number);
    test_trees(device);
    test_codes(device);
    test_sums(device);
  }
}
