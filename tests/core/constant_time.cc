// Runs under Valgrind's Memcheck. Secrets are marked as uninitialized memory, so Memcheck reports every
// branch and every address that depends on one. With --leak-on-purpose the test takes such a branch, to
// show that the check can fail. Valgrind does not support AVX-512, so that tier is not tested.

#include <valgrind/memcheck.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "dpf/generate.h"
#include "dpf/shares.h"
#include "hash/records.h"
#include "keyed/key_hash.h"
#include "lut/fields.h"
#include "lut/lookup.h"
#include "lut/tree.h"
#include "ot/check/check.h"
#include "ot/codes/expand_convolute.h"
#include "ot/codes/quasi_cyclic.h"
#include "ot/hash/hash.h"
#include "ot/trees/tree.h"
#include "pir/check.h"
#include "rlwe/layer.h"

namespace {

using namespace nescio;

template <class T>
void make_secret(std::vector<T>& values) {
  VALGRIND_MAKE_MEM_UNDEFINED(values.data(), values.size() * sizeof(T));
}

/// A message at its receiver, who may branch on it.
std::vector<std::uint8_t> received(std::span<const std::uint8_t> message) {
  std::vector<std::uint8_t> bytes(message.begin(), message.end());
  VALGRIND_MAKE_MEM_DEFINED(bytes.data(), bytes.size());
  return bytes;
}

/// Generates keys for secret points, payloads and roots.
void generate_keys(const dpf::Shape& shape, Tier tier) {
  constexpr std::size_t kKeys = 5;
  std::vector<std::uint64_t> alphas(kKeys, shape.domain / 2);
  std::vector<Block> payloads(kKeys, Block{7, 0}), roots(2 * kKeys, Block{1, 2});
  std::vector<std::uint8_t> keys0(kKeys * shape.key_bytes()), keys1(keys0.size());
  make_secret(alphas);
  make_secret(payloads);
  make_secret(roots);
  dpf::insecure_generate(shape, alphas, payloads, roots, keys0.data(), keys1.data(), tier);
}

/// Adds the servers' answers.
void decode(dpf::Output output) {
  std::vector<std::uint8_t> a(64, 1), b(64, 2), sums(64);
  make_secret(a);
  make_secret(b);
  dpf::combine(output, a.data(), b.data(), a.size(), sums.data());
}

/// Checks secret rows, which are not proven, against two hash tables.
void check_found_rows(std::size_t lookups, Tier tier) {
  constexpr std::size_t kRowBytes = 71;
  std::vector<std::uint64_t> indices(lookups, 700);
  std::vector<std::uint8_t> rows(lookups * kRowBytes, 1), records(lookups * hash::kHashRowBytes, 2);
  const std::vector<std::uint8_t> tops(5 * hash::kHashBytes, 3);
  make_secret(indices);
  make_secret(rows);
  make_secret(records);
  const std::uint8_t* const tables[] = {records.data(), records.data()};
  if (pir::check_rows({indices, rows.data(), kRowBytes, tables, tops}, tier)) std::abort();
}

/// Hashes secret keys of public lengths.
void hash_keys_of_a_table() {
  ThreadPool pool(1);
  std::vector<std::uint8_t> data(1000, 1);
  make_secret(data);
  const std::vector<std::uint8_t> seed(keyed::kSeedBytes, 2);
  const std::vector<std::uint64_t> ends = {1, 23, 78, 500, 1000};
  std::vector<keyed::KeyWords> words(ends.size());
  keyed::hash_keys(seed, {data, ends}, words.data(), pool);
}

/// Expands both parties' trees, with secret seeds and delta, and secret sums and choices of the
/// receiver.
void make_trees(std::size_t trees, unsigned depth, Tier tier) {
  ThreadPool pool(1);
  std::vector<Block> seeds(trees, Block{1, 2}), delta(1, Block{3, 4}), sums(trees * depth);
  std::vector<Block> leaves(trees << depth);
  make_secret(seeds);
  make_secret(delta);
  ot::grow_trees(seeds, depth, delta[0], {}, leaves.data(), sums.data(), pool, tier);

  std::vector<std::uint8_t> choices(trees * depth, 1);
  make_secret(choices);
  ot::puncture_trees(sums, choices, depth, {}, leaves.data(), pool, tier);
}

/// Computes the consistency check of leaves and punctured positions, and the hash.
void check_and_hash(Tier tier) {
  ThreadPool pool(1);
  const std::uint8_t seed[16] = {1};
  std::vector<Block> leaves(129, Block{5, 6}), chi(3);
  std::vector<std::uint64_t> positions(chi.size(), 7);
  make_secret(leaves);
  make_secret(positions);
  ot::chi_sum(leaves, seed, pool, tier);
  ot::chi_at(positions, seed, chi.data(), tier);
  ot::pack_bits(leaves.data());
  ot::hash_blocks(leaves, 0, 0, {}, leaves[0], leaves.data(), pool, tier);
}

/// Applies the codes of dual LPN to secret noise.
void encode(Tier tier) {
  constexpr std::size_t kOutputs = 523;
  constexpr std::uint8_t kSeed[16] = {1, 2, 3};
  std::vector<Block> noise(2 * kOutputs, Block{3, 5});
  make_secret(noise);
  ThreadPool pool(1);
  ot::QuasiCyclicScratch scratch;
  ot::encode_quasi_cyclic(noise, kSeed, kOutputs, pool, tier, scratch);
  ot::encode_expand_convolute(noise, kSeed, pool, tier);
}

/// Encrypts secret messages, multiplies them by secret weights, and decrypts. Seeds and weights are
/// secret, and so are all keys and shares.
void multiply_ciphertexts(Tier tier) {
  ThreadPool pool(1);
  const rlwe::Seed open = {};
  std::vector<std::uint8_t> secret(rlwe::kSeedBytes, 1);
  std::vector<std::uint32_t> messages(rlwe::kDegree, 2);
  std::vector<std::int32_t> coefficients(rlwe::kDegree, 3);
  make_secret(secret);
  make_secret(messages);
  make_secret(coefficients);
  rlwe::Seed seed;
  std::memcpy(seed.data(), secret.data(), seed.size());
  const rlwe::ClientKey key(seed, open, tier);
  auto sent = rlwe::encrypt(key, messages.data(), 1, seed, open, pool, tier);
  const std::uint32_t counts[] = {2}, positions[] = {3, 4095};
  const rlwe::Results results(counts, positions, 21);
  std::vector<std::uint32_t> places(rlwe::kDegree);
  std::iota(places.begin(), places.end(), 0u);
  const std::uint8_t present[] = {1};
  const rlwe::WeightPart part = {1, places, present, coefficients};
  const std::vector<std::uint8_t> public_key = received(key.public_key());
  const rlwe::PublicKey parsed(public_key, pool, tier);
  const rlwe::Ciphertexts inputs("ciphertexts", received(sent), 1, pool, tier);
  const rlwe::Ciphertexts* const parts[] = {&inputs};
  for (bool keep_transformed : {true, false}) {
    const rlwe::Weights weights({&part, 1}, 1, keep_transformed, pool, tier);
    const auto out = rlwe::evaluate(parsed, weights, results, parts, 1, seed, pool, tier);
    rlwe::decrypt(key, results, received(out.answer), 1, pool, tier);
  }
}

/// Words of secret arrays, one array for each table.
struct SecretWords {
  SecretWords(std::size_t count, std::size_t width) : words(count * width, 5), width(width) {
    make_secret(words);
  }
  operator lut::Words<const std::uint64_t>() const { return {words.data(), width}; }
  operator lut::Words<std::uint64_t>() { return {words.data(), width}; }

  std::vector<std::uint64_t> words;
  std::size_t width;
};

/// Makes one-time tables from secret transfers: one-hot vectors, offsets and daBits. Messages are public.
SecretWords make_tables(unsigned bits, std::size_t count) {
  ThreadPool pool(1);
  const std::size_t width = std::max<std::size_t>(1, (std::size_t{1} << bits) / 64);
  SecretWords shares(count, width), zero(count, width), one(count, width), entries(count, width);
  std::vector<std::uint8_t> own(count, 1);
  std::vector<std::uint32_t> numbers(count, 6);
  make_secret(own);
  make_secret(numbers);
  const auto exchange = [&](const lut::Field& field) {
    std::vector<std::uint8_t> message(lut::message_bytes(field, count));
    lut::write_message(field, count, {shares, own.data(), zero, one}, message.data(),
                       numbers.data(), pool);
    const auto open = received(message);
    lut::read_message(field, count, {own.data(), one, open.data()}, entries, numbers.data(), pool);
  };
  for (unsigned level = 0; level < bits; ++level) {
    exchange({(1u << level) - 1, bits - 1 - level, level});
    if (level != 0) lut::grow(level, count, own.data(), zero, entries, shares, pool);
  }
  exchange({0, lut::kRingBits - 1, 0});
  return shares;
}

/// Makes large one-hot vectors by trees with secret roots. Corrections are public, and the keys.
void grow_large_tables(unsigned bits, std::size_t count, Tier tier) {
  ThreadPool pool(1);
  const unsigned levels = bits - lut::kBlockBits;
  SecretWords nodes(count, (std::size_t{1} << bits) / 64);
  std::vector<std::uint64_t> sums(2 * count);
  std::vector<std::uint32_t> controls(count);
  for (unsigned level = 1; level <= levels; ++level) {
    const lut::Trees trees{level, level == levels, count};
    lut::expand_trees(trees, Block{8, 9}, nodes, sums.data(), controls.data(), pool, tier);
    VALGRIND_MAKE_MEM_DEFINED(sums.data(), sums.size() * sizeof(sums[0]));
    lut::correct_trees(trees, sums.data(), controls.data(), nodes, pool);
  }
}

/// Looks up opened places, which are public, in tables of secret shares; packs secret entries, and adds
/// secret shares of daBits.
template <class T>
void look_up(unsigned bits, std::size_t count, const SecretWords& shares, Tier tier) {
  ThreadPool pool(1);
  const std::vector<T> twice(lut::table_length<T>(bits), 3);
  const std::vector<std::uint16_t> opened(count, 9);
  std::vector<T> entries(count);
  lut::look_up({bits, twice.data()}, count, shares, opened.data(), entries.data(), pool, tier);

  std::vector<std::uint16_t> masked(entries.begin(), entries.end());
  std::vector<std::uint8_t> packed(lut::message_bytes({bits, 0, 0}, count));
  lut::pack(bits, count, masked.data(), packed.data());
  lut::unpack(bits, count, packed.data(), masked.data());
  std::vector<std::uint32_t> dabits(count, 7), totals(count, 8);
  make_secret(dabits);
  make_secret(totals);
  for (unsigned number = 0; number < bits; ++number) {
    lut::add_dabits(number, count, opened.data(), dabits.data(), totals.data());
  }
}

void leak_on_purpose() {
  std::vector<std::uint8_t> secret(1, 1);
  make_secret(secret);
  if (secret[0] == 1) std::puts("leaked");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--leak-on-purpose") == 0) leak_on_purpose();
  hash_keys_of_a_table();
  for (Tier tier : supported_tiers()) {
    for (std::uint8_t id = 1; prg::is_generator(id); ++id) {
      const auto generator = static_cast<prg::GeneratorId>(id);
      for (auto output : {dpf::Output::bit, dpf::Output::u8, dpf::Output::u32, dpf::Output::u64,
                          dpf::Output::u128}) {
        generate_keys({100'000, output, generator}, tier);
        decode(output);
      }
    }
    for (unsigned depth : {1u, 2u, 7u, 14u}) make_trees(depth == 14 ? 1 : 5, depth, tier);
    for (std::size_t lookups : {1u, 3u, 70u}) check_found_rows(lookups, tier);
    check_and_hash(tier);
    encode(tier);
    multiply_ciphertexts(tier);
    for (unsigned bits : {4u, 6u, 8u, 12u}) {
      constexpr std::size_t kTables = 13;
      const SecretWords shares = make_tables(bits, kTables);
      look_up<std::uint8_t>(bits, kTables, shares, tier);
      look_up<std::uint16_t>(bits, kTables, shares, tier);
    }
    for (unsigned bits : {8u, 9u, 12u}) grow_large_tables(bits, 70, tier);
    std::printf("tier %s: constant time\n", tier_name(tier));
  }
}
