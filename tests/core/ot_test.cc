// The kernels of oblivious transfer under the sanitizers: every tier, with odd sizes. The results
// are compared with the executable specification in Python.

#include <vector>

#include "base/cpu.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "check.h"
#include "ot/check/check.h"
#include "ot/codes/primal.h"
#include "ot/hash/hash.h"
#include "ot/stream.h"
#include "ot/transpose.h"
#include "ot/trees/tree.h"

namespace {

using namespace nescio;
using Blocks = std::vector<Block>;

constexpr std::uint8_t kSeed[16] = {1, 2, 3};
constexpr ot::TreeBase kKeys = {{77, 78}, 5};
constexpr Block kDelta = {0x1234567, 0x89};

Blocks counted(std::size_t n) {
  Blocks blocks(n);
  for (std::size_t i = 0; i < n; ++i) blocks[i] = {i * 0x9E3779B97F4A7C15, ~i};
  return blocks;
}

/// Two of three choices are 1. The receiver's inputs are the sums, or for choice 1 those of the
/// right nodes.
void test_trees(std::size_t trees, unsigned depth, Tier tier) {
  ThreadPool pool(2);
  Blocks leaves(trees << depth), others(leaves.size()), sums(trees * depth);
  ot::grow_trees(counted(trees), depth, kDelta, kKeys, leaves.data(), sums.data(), pool, tier);
  std::vector<std::uint8_t> choices(sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    choices[i] = i % 3 != 0;
    sums[i] ^= block_mask(choices[i]) & kDelta;
  }
  ot::puncture_trees(sums, choices, depth, kKeys, others.data(), pool, tier);
  std::size_t punctured = 0;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const bool differs = leaves[i] != others[i];
    CHECK(!differs || (leaves[i] ^ others[i]) == kDelta);
    CHECK(control_bit(others[i]) == differs && control_bit(leaves[i]) == 0);
    punctured += differs;
  }
  CHECK(punctured == trees);
}

void test_rows(std::size_t rows, std::size_t k, Tier tier) {
  ThreadPool pool(2);
  const Blocks seeds = counted(k);
  Blocks noise(rows), again(rows);
  ot::encode_primal(noise, seeds, kSeed, 5, pool, tier);
  ot::encode_primal(again, seeds, kSeed, 5, pool, Tier::portable);
  CHECK(noise == again);
  std::vector<std::uint32_t> words(rows);
  ot::WordStream(kSeed, tier).words(3, words.size(), words.data());
}

void test_hash_and_check(std::size_t n, Tier tier) {
  ThreadPool pool(2);
  const Blocks blocks = counted(n);
  Blocks hashes(n), again(n), chi(n);
  ot::hash_blocks(blocks, 1, 2, kKeys.base, kDelta, hashes.data(), pool, tier);
  ot::hash_blocks(blocks, 1, 2, kKeys.base, kDelta, again.data(), pool, Tier::portable);
  CHECK(hashes == again);
  CHECK(ot::chi_sum(blocks, kSeed, pool, tier) == ot::chi_sum(blocks, kSeed, pool, Tier::portable));
  ot::chi_at(std::vector<std::uint64_t>(n, 9), kSeed, chi.data(), tier);
}

void test_transpose(std::size_t bytes) {
  const std::vector<std::uint8_t> rows(128 * bytes, 0xFF);
  Blocks blocks(8 * bytes);
  ot::transpose_bits(rows.data(), bytes, blocks.data());
  for (Block b : blocks) CHECK(b.lo == ~std::uint64_t{0} && b.hi == b.lo);
}

}  // namespace

int main() {
  for (Tier tier : supported_tiers()) {
    for (unsigned depth : {1u, 2u, 3u, 5u, 6u, 9u, 13u}) {
      for (std::size_t trees : {0, 1, 3, 17}) test_trees(trees, depth, tier);
    }
    test_trees(2, 14, tier);
    for (std::size_t n : {0, 1, 3, 31, 32, 33, 257, 20000}) {
      test_rows(n, 1 << 10, tier);
      test_rows(n, 1001, tier);
      test_hash_and_check(n, tier);
    }
    std::printf("tier %s: good\n", tier_name(tier));
  }
  ot::pack_bits(counted(128).data());
  for (std::size_t bytes : {0, 1, 63, 64, 65}) test_transpose(bytes);
}
