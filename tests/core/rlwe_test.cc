// Runs ring-LWE products under the sanitizers, with every tier and several threads. Transforms are compared
// with their definition; Python tests compare messages with the executable specification.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/cpu.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "check.h"
#include "rlwe/kernels.h"
#include "rlwe/layer.h"
#include "rlwe/messages.h"

namespace {

using namespace nescio;
using rlwe::kDegree;
using Rows = std::vector<std::uint32_t>;
using Bytes = std::span<const std::uint8_t>;

/// Reproducible words of 32 bits.
Rows varied_words(std::size_t count, std::uint64_t seed = 1) {
  Rows words(count);
  for (std::uint32_t& word : words) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    word = static_cast<std::uint32_t>(seed >> 32);
  }
  return words;
}

/// Reproducible residues modulo p_i, with the extreme ones.
Rows varied_row(unsigned i, std::uint64_t seed) {
  Rows row = varied_words(kDegree, seed);
  for (std::uint32_t& x : row) x %= rlwe::kPrimes[i].p;
  row[0] = 0;
  row[kDegree - 1] = row[1] = rlwe::kPrimes[i].p - 1;
  return row;
}

std::uint64_t evaluate_at(const Rows& a, std::uint64_t x, std::uint64_t p) {
  std::uint64_t value = 0;
  for (std::size_t k = a.size(); k-- > 0;) value = (value * x + a[k]) % p;
  return value;
}

std::uint64_t power_of(std::uint64_t base, std::size_t exponent, std::uint64_t p) {
  std::uint64_t result = 1;
  for (; exponent > 0; exponent /= 2, base = base * base % p) {
    if (exponent % 2 == 1) result = result * base % p;
  }
  return result;
}

void test_transforms(Tier tier) {
  const rlwe::Kernels& kernels = rlwe::kernels_of(tier);
  for (unsigned i = 0; i < 2; ++i) {
    const std::uint64_t p = rlwe::kPrimes[i].p;
    const Rows a = varied_row(i, 7 + i);
    Rows values = a;
    kernels.forward(i, values.data());
    for (std::size_t k : {0u, 1u, 2u, 1000u, 4095u}) {
      std::size_t reversed = 0;
      for (unsigned bit = 0; bit < 12; ++bit) reversed |= (k >> bit & 1) << (11 - bit);
      const std::uint64_t point = power_of(rlwe::kPrimes[i].root, 2 * reversed + 1, p);
      CHECK(values[k] == evaluate_at(a, point, p));
    }
    kernels.inverse(i, values.data());
    CHECK(values == a);
    const Rows largest(kDegree, static_cast<std::uint32_t>(p - 1));
    values = largest;
    kernels.forward(i, values.data());
    CHECK(*std::max_element(values.begin(), values.end()) < p);
    kernels.inverse(i, values.data());
    CHECK(values == largest);
  }
}

void test_sums_of_products(Tier tier) {
  const rlwe::Kernels& kernels = rlwe::kernels_of(tier);
  for (unsigned i = 0; i < 2; ++i) {
    const std::uint64_t p = rlwe::kPrimes[i].p, word = (std::uint64_t{1} << 32) % p;
    const Rows a(kDegree, static_cast<std::uint32_t>(p - 1));
    Rows b = a, out(kDegree);
    kernels.to_montgomery(i, b.data());
    CHECK(b[0] == (p - 1) * word % p);
    for (std::size_t count : {1u, 2u, 15u, 16u, 17u, 33u}) {
      const std::vector<rlwe::Term> terms(count, rlwe::Term{a.data(), b.data()});
      kernels.multiply(i, terms, out.data());
      CHECK(std::all_of(out.begin(), out.end(), [&](std::uint32_t x) { return x == count; }));
    }
  }
}

/// Scaling and signs, against 128-bit integers.
void test_numbers(Tier tier) {
  const rlwe::Kernels& kernels = rlwe::kernels_of(tier);
  using Wide = unsigned __int128;
  const std::uint64_t q = rlwe::kModulus;
  Rows m = varied_words(kDegree, 3);
  m[0] = 0, m[1] = 0xFFFFFFFF, m[2] = 0x80000000;
  Rows rows[2] = {Rows(kDegree), Rows(kDegree)};
  for (unsigned i = 0; i < 2; ++i) {
    kernels.scale_up(i, m.data(), rows[i].data());
    for (std::size_t k = 0; k < kDegree; ++k) {
      const Wide scaled = (Wide{m[k]} * q + (std::uint64_t{1} << 31)) >> 32;
      CHECK(rows[i][k] == static_cast<std::uint64_t>(scaled) % rlwe::kPrimes[i].p);
    }
    rows[i] = varied_row(i, 11);
  }
  const std::uint32_t* both[2] = {rows[0].data(), rows[1].data()};
  std::vector<std::uint64_t> centered(kDegree), low(kDegree), high(kDegree);
  kernels.center(both, centered.data());
  kernels.scale_to_32(both, low.data());
  kernels.scale_to_40(both, high.data());
  for (std::size_t k = 0; k < kDegree; ++k) {
    const auto x = static_cast<std::int64_t>(centered[k]);
    const std::uint64_t c = x < 0 ? centered[k] + q : centered[k];
    CHECK(c < q && static_cast<std::uint64_t>(x < 0 ? -x : x) <= q / 2);
    CHECK(c % rlwe::kPrimes[0].p == rows[0][k] && c % rlwe::kPrimes[1].p == rows[1][k]);
    CHECK(low[k] == static_cast<std::uint32_t>(((Wide{c} << 33) + q) / (Wide{q} * 2)));
    const auto rounded = static_cast<std::uint64_t>(((Wide{c} << 41) + q) / (Wide{q} * 2));
    CHECK(high[k] == (rounded & ((std::uint64_t{1} << 40) - 1)));
  }
}

/// The parties, with fixed seeds.
struct Parties {
  explicit Parties(unsigned threads, Tier tier_)
      : pool(threads), tier(tier_), key(seed, seed, tier) {}

  rlwe::Seed seed{1, 2, 3};
  ThreadPool pool;
  Tier tier;
  rlwe::ClientKey key;

  rlwe::Ciphertexts encrypted(const std::uint32_t* messages, std::size_t count) {
    const auto sent = rlwe::encrypt(key, messages, count, seed, seed, pool, tier);
    return {"ciphertexts", Bytes(sent.data(), sent.size()), count, pool, tier};
  }
};

/// Multiplies two inputs, of a message each, by weights X^5 and -3 X^4095 for the first output. The second
/// one has 2 and a zero. The outcome is the same with and without transforms that are kept.
void test_products(unsigned bits, Tier tier) {
  Parties parties(3, tier);
  const Rows messages = varied_words(2 * kDegree, 5);
  const Rows places = {5, 0}, place = {4095};
  const std::vector<std::int32_t> values = {1, 0, 0, 2}, value = {-3};
  const std::vector<std::uint8_t> all = {1, 1}, first_one = {1, 0};
  const rlwe::WeightPart parts[] = {{1, places, all, values}, {1, place, first_one, value}};
  const Rows counts = {3, 1}, positions = {4, 5, 4095, 17};
  const rlwe::Results results(counts, positions, bits);
  const rlwe::Weights weights(parts, 2, true, parties.pool, tier);
  const rlwe::Weights others(parts, 2, false, parties.pool, tier);
  CHECK(weights.bytes() == 3 * 8 * kDegree && others.bytes() == 5 * 4);
  const rlwe::PublicKey key(parties.key.public_key(), parties.pool, tier);
  const rlwe::Ciphertexts first = parties.encrypted(messages.data(), 1);
  const rlwe::Ciphertexts second = parties.encrypted(messages.data() + kDegree, 1);
  const rlwe::Ciphertexts* const both[] = {&first, &second};
  const auto out = rlwe::evaluate(key, weights, results, both, 1, parties.seed, parties.pool, tier);
  const auto same = rlwe::evaluate(key, others, results, both, 1, parties.seed, parties.pool, tier);
  CHECK(std::equal(out.answer.data(), out.answer.data() + out.answer.size(), same.answer.data()));
  CHECK(std::equal(out.shares.data(), out.shares.data() + 4, same.shares.data()));
  const auto client = rlwe::decrypt(parties.key, results, out.answer, 1, parties.pool, tier);
  const std::uint32_t *a = messages.data(), *b = a + kDegree;
  const Rows expected = {0 - a[4095] + 3 * b[5], a[0] + 3 * b[6], a[4090] - 3 * b[0], 2 * a[17]};
  for (std::size_t k = 0; k < 4; ++k) {
    CHECK((client[k] + out.shares[k] - expected[k] + 1) << (32 - bits) <= 2u << (32 - bits));
  }
  CHECK_THROWS(rlwe::evaluate(key, weights, results, std::span(both).first(1), 1, parties.seed,
                              parties.pool, tier),
               ErrorKind::argument);
  CHECK_THROWS(rlwe::evaluate(key, weights, results, both, 2, parties.seed, parties.pool, tier),
               ErrorKind::argument);
}

/// Blocks of outputs that are transformed together end where the next output would not fit.
void test_blocks() {
  ThreadPool pool(2);
  const Rows place = {0};
  const std::vector<std::uint8_t> present(5 * 30, 1), wide(2 * 100, 1);
  const std::vector<std::int32_t> values(200, 1);
  const auto first = [&](std::size_t count) { return std::span(values).first(count); };
  const rlwe::WeightPart part = {30, place, present, first(150)},
                         other = {100, place, wide, first(200)};
  const rlwe::Weights weights({&part, 1}, 5, false, pool, Tier::portable);
  CHECK(weights.block_end(0) == 2 && weights.block_end(2) == 4 && weights.block_end(4) == 5);
  CHECK(weights.buffer_rows() == 2 * 60);
  const rlwe::Weights large({&other, 1}, 2, false, pool, Tier::portable);
  CHECK(large.block_end(0) == 1 && large.block_end(1) == 2 && large.buffer_rows() == 2 * 100);
  const rlwe::Weights kept({&part, 1}, 5, true, pool, Tier::portable);
  CHECK(kept.block_end(0) == 5 && kept.buffer_rows() == 0);
}

/// Numbers of every width, and their order in bytes.
void test_packing() {
  for (unsigned bits = 1; bits <= 40; ++bits) {
    for (std::size_t count : {0u, 1u, 7u, 8u, 101u}) {
      std::vector<std::uint64_t> numbers(count), again(count);
      const Rows words = varied_words(2 * count, bits);
      for (std::size_t k = 0; k < count; ++k) {
        numbers[k] = words[2 * k] | std::uint64_t{words[2 * k + 1]} << 32;
      }
      std::vector<std::uint8_t> bytes(rlwe::packed_bytes(count, bits));
      rlwe::write_packed(numbers, bits, bytes.data());
      rlwe::read_packed(bytes.data(), bits, again);
      for (std::size_t k = 0; k < count; ++k) {
        CHECK(again[k] == (numbers[k] & ((std::uint64_t{1} << bits) - 1)));
        const std::size_t first = k * bits;
        CHECK((bytes[first / 8] >> first % 8 & 1) == (numbers[k] & 1));
      }
    }
  }
}

void test_invalid_messages(Tier tier) {
  Parties parties(1, tier);
  const auto key = parties.key.public_key();
  std::vector<std::uint8_t> bytes(key.begin(), key.end());
  rlwe::PublicKey(bytes, parties.pool, tier);
  for (std::size_t size : {std::size_t{0}, std::size_t{31}, bytes.size() - 1}) {
    CHECK_THROWS(rlwe::PublicKey(Bytes(bytes).first(size), parties.pool, tier),
                 ErrorKind::malformed_message);
  }
  std::fill_n(bytes.end() - 4, 4, std::uint8_t{255});
  CHECK_THROWS(rlwe::PublicKey(bytes, parties.pool, tier), ErrorKind::malformed_message);
  const Rows one = {1};
  const rlwe::Results results(one, one);
  CHECK_THROWS(rlwe::decrypt(parties.key, results, bytes, 1, parties.pool, tier),
               ErrorKind::malformed_message);
  CHECK_THROWS(rlwe::decrypt(parties.key, results, bytes, ~std::size_t{0} / 2, parties.pool, tier),
               ErrorKind::resource);
}

void test_invalid_arguments() {
  ThreadPool pool(1);
  const Rows counts = {1}, beyond = {4096};
  CHECK_THROWS(rlwe::Results(counts, beyond), ErrorKind::argument);
  CHECK_THROWS(rlwe::Results(counts, {}), ErrorKind::argument);
  CHECK_THROWS(rlwe::Results(counts, counts, 0), ErrorKind::argument);
  CHECK_THROWS(rlwe::Results(counts, counts, 33), ErrorKind::argument);
}

void test_invalid_weights() {
  ThreadPool pool(1);
  const Rows beyond(kDegree, 4096), below(kDegree, 1);
  const std::vector<std::uint8_t> one = {1}, none = {0};
  const std::vector<std::int32_t> large(kDegree, 8193);  // a norm of more than 2^19
  const auto refused = [&](const rlwe::WeightPart& part, std::size_t outputs) {
    CHECK_THROWS(rlwe::Weights({&part, 1}, outputs, false, pool, Tier::portable),
                 ErrorKind::argument);
  };
  refused({1, below, one, large}, 1);
  refused({1, beyond, one, std::vector<std::int32_t>(kDegree)}, 1);
  refused({1, below, one, std::vector<std::int32_t>(kDegree - 1)}, 1);
  refused({1, below, none, std::vector<std::int32_t>(kDegree)}, 1);
  refused({1, below, one, std::vector<std::int32_t>(kDegree)}, 2);
  refused({0, below, {}, {}}, 1);
  refused({1, below, {}, {}}, 0);
}

}  // namespace

int main() {
  for (Tier tier : supported_tiers()) {
    test_transforms(tier);
    test_sums_of_products(tier);
    test_numbers(tier);
    for (unsigned bits : {2u, 8u, 19u, 32u}) test_products(bits, tier);
    test_invalid_messages(tier);
  }
  test_packing();
  test_invalid_arguments();
  test_invalid_weights();
  test_blocks();
}
