// Runs the engine end to end under the sanitizers, with every tier, generator and output and at odd
// sizes. Python tests compare the results with the executable specification.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "base/cpu.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "check.h"
#include "dpf/evaluate.h"
#include "dpf/generate.h"
#include "dpf/shares.h"
#include "pir/answer.h"
#include "prg/aes128.h"
#include "prg/highwayhash.h"
#include "prg/salsa20.h"

namespace {

using namespace nescio;
using Bytes = std::vector<std::uint8_t>;

constexpr dpf::Output kOutputs[] = {dpf::Output::bit, dpf::Output::u8, dpf::Output::u32,
                                    dpf::Output::u64, dpf::Output::u128};
constexpr prg::GeneratorId kGenerators[] = {
    prg::GeneratorId::aes128,           prg::GeneratorId::chacha20,
    prg::GeneratorId::chacha12,         prg::GeneratorId::chacha8,
    prg::GeneratorId::salsa20,          prg::GeneratorId::sha256,
    prg::GeneratorId::insecure_siphash, prg::GeneratorId::insecure_highwayhash};
constexpr std::uint64_t kDomains[] = {1, 2, 127, 513, 5000};

struct KeyPair {
  Bytes bytes[2];
  dpf::Keys keys[2];
};

/// Makes keys of `count` consecutive points from alpha.

KeyPair make_keys(const dpf::Shape& shape, std::uint64_t alpha, Tier tier, std::size_t count = 1) {
  KeyPair pair;
  for (Bytes& bytes : pair.bytes) bytes.resize(count * shape.key_bytes());
  std::vector<std::uint64_t> alphas;
  for (std::size_t i = 0; i < count; ++i) alphas.push_back((alpha + i) % shape.domain);
  const std::vector<Block> payloads(count, Block{1, 0});
  dpf::generate(shape, alphas, payloads, pair.bytes[0].data(), pair.bytes[1].data(), tier);
  for (int party = 0; party < 2; ++party) {
    pair.keys[party] = dpf::Keys(pair.bytes[party].data(), count, shape.key_bytes());
  }
  return pair;
}

dpf::Keys parse(const Bytes& bytes) { return dpf::Keys(bytes.data(), 1, bytes.size()); }

void test_aes_known_answer(Tier) {
  Block key, plain;
  const std::uint8_t text[16] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                                 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};
  const std::uint8_t cipher[16] = {0x69, 0xc4, 0xe0, 0xd8, 0x6a, 0x7b, 0x04, 0x30,
                                   0xd8, 0xcd, 0xb7, 0x80, 0x70, 0xb4, 0xc5, 0x5a};
  for (std::uint8_t i = 0; i < 16; ++i) reinterpret_cast<std::uint8_t*>(&key)[i] = i;
  std::memcpy(&plain, text, sizeof(plain));
  Block out;
  prg::aes128::portable::encrypt(prg::aes128::variable_time_expand_key(key), &plain, 1, &out);
  CHECK(std::memcmp(&out, cipher, sizeof(cipher)) == 0);  // FIPS 197, appendix C.1
}

/// Known answers for inputs that are not nodes: cores compute on arbitrary words.
void test_cores_known_answers(Tier) {
  // "Salsa20 specification", section 8, third example.
  const std::uint32_t words[16] = {0x730d9fd3, 0xb752374c, 0x25de7503, 0x88eabbbf,
                                   0x30b3ed31, 0xdbb26a01, 0x30a6c7af, 0xcfb31056,
                                   0x3f20f01f, 0xa15d530f, 0x71309374, 0x24cc37ee,
                                   0x4febc94f, 0x2f9c5103, 0xf3f41acb, 0x36687658};
  const std::uint32_t hashed[16] = {0xa8b22a6d, 0xeef8f09c, 0xcbbec4a8, 0x9aaa6e1a,
                                    0x1a961d1d, 0xf9eb1e96, 0x30fba3be, 0x39339045,
                                    0x9d982876, 0x5e1b39b4, 0x23ec2a6b, 0x72726f1b,
                                    0x87e8ecdb, 0x126e9b6f, 0x9e5fe818, 0xca3013b3};
  std::uint32_t out[16];
  prg::Salsa20Core::hash(words, out);
  CHECK(std::equal(out, out + 16, hashed));

  // Google's vectors of HighwayHash-256, for the message 00 01 .. 1f under the key 00 01 .. 1f.
  const std::uint64_t counted[4] = {0x0706050403020100, 0x0f0e0d0c0b0a0908, 0x1716151413121110,
                                    0x1f1e1d1c1b1a1918};
  const std::uint64_t expected[4] = {0xbce38c9039a1c3fe, 0x42d56326a3c11289, 0xe35595f764fcaea9,
                                     0xc9b03c6bc9475a99};
  std::uint64_t digest[4];
  prg::HighwayHashCore::hash(counted, counted, digest);
  CHECK(std::equal(digest, digest + 4, expected));
}

void test_shares_add_up(Tier tier) {
  constexpr std::size_t kKeys = 3;
  ThreadPool pool(2);
  for (auto output : kOutputs) {
    for (auto generator : kGenerators) {
      for (std::uint64_t domain : kDomains) {
        const dpf::Shape shape{domain, output, generator};
        const KeyPair pair = make_keys(shape, domain / 2, tier, kKeys);
        const std::size_t bytes = dpf::share_bytes(output, domain);
        Bytes shares[2] = {Bytes(kKeys * bytes), Bytes(kKeys * bytes)}, sums(kKeys * bytes);
        for (int party = 0; party < 2; ++party) {
          dpf::evaluate_range(pair.keys[party], 0, domain, shares[party].data(), pool, tier);
        }
        dpf::combine(output, shares[0].data(), shares[1].data(), sums.size(), sums.data());
        Bytes expected(kKeys * bytes);
        for (std::size_t i = 0; i < kKeys; ++i) {
          const std::uint64_t bit = (domain / 2 + i) % domain * dpf::element_bits(output);
          expected[i * bytes + bit / 8] = static_cast<std::uint8_t>(1 << (bit % 8));
        }
        CHECK(sums == expected);
      }
    }
  }
}

void test_ranges_and_points_agree(Tier tier) {
  ThreadPool pool(2);
  const dpf::Shape shape{70'001, dpf::Output::u8, prg::GeneratorId::chacha20};
  const KeyPair pair = make_keys(shape, 69'999, tier);
  Bytes all(shape.domain);
  dpf::evaluate_range(pair.keys[0], 0, shape.domain, all.data(), pool, tier);
  for (std::uint64_t start : {0u, 1u, 63u, 64u, 65u, 69'990u}) {
    for (std::uint64_t length : {0u, 1u, 7u, 11u}) {
      Bytes part(length), singles(length);
      dpf::evaluate_range(pair.keys[0], start, start + length, part.data(), pool, tier);
      std::vector<std::uint64_t> points;
      for (std::uint64_t i = 0; i < length; ++i) points.push_back(start + i);
      dpf::evaluate_points(pair.keys[0], points, singles.data(), pool, tier);
      CHECK(std::equal(part.begin(), part.end(), all.begin() + static_cast<std::ptrdiff_t>(start)));
      CHECK(part == singles);
    }
  }
  CHECK_THROWS(dpf::evaluate_range(pair.keys[0], 0, 70'002, all.data(), pool, tier),
               ErrorKind::index);
}

/// Makes a table of varied bytes, in the layout of an output.
struct TestTable {
  TestTable(std::uint64_t rows, std::size_t row_bytes, dpf::Output output, ThreadPool& pool)
      : plain(rows * row_bytes), extent(pir::Bins({{1, rows, 1}}), row_bytes, output) {
    for (std::size_t i = 0; i < plain.size(); ++i)
      plain[i] = static_cast<std::uint8_t>(i * 37 >> 3);
    memory = Bytes(extent.bytes());
    pir::store_rows(extent, plain.data(), 0, rows, memory.data(), pool, Tier::portable);
  }
  Bytes plain;
  pir::TableExtent extent;
  Bytes memory;
};

void test_answers(Tier tier) {
  ThreadPool pool(2);
  for (auto output : kOutputs) {
    for (std::size_t row_bytes : {1u, 7u, 8u, 9u, 64u, 71u, 200u}) {
      for (std::size_t batch : {1u, 7u, 9u, 70u, 300u}) {
        if (batch == 300 && row_bytes != 9 && row_bytes != 71) continue;  // slow
        const std::uint64_t rows = 1'500;
        const TestTable table(rows, row_bytes, output, pool);
        const KeyPair pair =
            make_keys({rows, output, prg::GeneratorId::chacha20}, 1'499, tier, batch);
        const std::size_t bytes = pir::answer_bytes(output, row_bytes);
        Bytes answers[2] = {Bytes(batch * bytes), Bytes(batch * bytes)}, sums(batch * bytes);
        for (int party = 0; party < 2; ++party) {
          const dpf::Keys* own = &pair.keys[party];
          pir::answer({table.memory.data(), table.extent}, {&own, 1}, answers[party].data(), pool,
                      tier);
        }
        if (tier != Tier::portable) {
          Bytes portable(batch * bytes);
          const dpf::Keys* own = &pair.keys[0];
          pir::answer({table.memory.data(), table.extent}, {&own, 1}, portable.data(), pool,
                      Tier::portable);
          CHECK(answers[0] == portable);
        }
        dpf::combine(output, answers[0].data(), answers[1].data(), sums.size(), sums.data());
        for (std::size_t i = 0; i < batch; ++i) {
          const std::uint8_t* expected = &table.plain[(1'499 + i) % rows * row_bytes];
          CHECK(std::memcmp(&sums[i * bytes], expected, row_bytes) == 0);
        }
      }
    }
  }
}

/// Every tier makes the memory of the portable code, and the rows again.
void test_rows_come_back(Tier tier) {
  ThreadPool pool(2);
  for (auto output : {dpf::Output::bit, dpf::Output::u8}) {
    for (std::size_t row_bytes : {1u, 3u, 7u, 8u, 9u, 16u, 20u, 64u, 71u}) {
      for (std::uint64_t rows : {1u, 7u, 512u, 513u, 1'300u}) {
        const TestTable table(rows, row_bytes, output, pool);
        Bytes memory(table.memory.size(), 0xEE), all(table.plain.size());
        pir::store_rows(table.extent, table.plain.data(), 0, rows, memory.data(), pool, tier);
        CHECK(memory == table.memory);
        pir::load_range(table.extent, memory.data(), 0, rows, all.data(), pool, tier);
        CHECK(all == table.plain);
        const std::uint64_t last = rows - 1;
        Bytes one(row_bytes);
        pir::load_rows(table.extent, memory.data(), {&last, 1}, one.data(), tier);
        CHECK(std::equal(one.begin(), one.end(), &table.plain[last * row_bytes]));
        CHECK_THROWS(pir::load_rows(table.extent, memory.data(), {&rows, 1}, one.data(), tier),
                     ErrorKind::index);
      }
    }
  }
}

/// Applies changes in every way and compares with the memory of a table made from the new rows.
void check_changes(const std::vector<std::uint64_t>& indices, std::uint64_t rows,
                   std::size_t row_bytes, dpf::Output output, Tier tier, ThreadPool& pool) {
  TestTable table(rows, row_bytes, output, pool);
  Bytes new_rows(indices.size() * row_bytes);
  for (std::size_t i = 0; i < new_rows.size(); ++i) new_rows[i] = static_cast<std::uint8_t>(i * 91);
  Bytes expected = table.plain;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    std::copy_n(&new_rows[i * row_bytes], row_bytes, &expected[indices[i] * row_bytes]);
  }
  const pir::RowChanges changes(indices, new_rows.data(), row_bytes, pir::Bins({{1, rows, 1}}),
                                pool);
  CHECK(changes.size() == indices.size());
  Bytes memory(table.memory.size());
  pir::replace_rows(table.extent, changes, table.memory.data(), pool, tier);
  pir::store_rows(table.extent, expected.data(), 0, rows, memory.data(), pool, Tier::portable);
  CHECK(memory == table.memory);
}

void test_changes(Tier tier) {
  ThreadPool pool(2);
  for (auto output : {dpf::Output::bit, dpf::Output::u32}) {
    for (std::size_t row_bytes : {1u, 4u, 7u, 16u, 20u, 70u}) {
      for (std::uint64_t rows : {1u, 600u, 5'000u}) {
        std::vector<std::uint64_t> all(rows), reversed(rows), some = {rows - 1, 0, rows - 1, 0};
        for (std::uint64_t i = 0; i < rows; ++i) {
          all[i] = i;
          reversed[i] = rows - 1 - i;
          if (i % 3 == 0) some.push_back(i * 37 % rows);
        }
        for (const auto& indices : {std::vector<std::uint64_t>{}, all, reversed, some}) {
          check_changes(indices, rows, row_bytes, output, tier, pool);
        }
      }
    }
  }
}

void test_groups_of_changes(Tier) {
  ThreadPool one(1), several(3);
  const std::uint64_t rows = 3'000;
  std::vector<std::uint64_t> indices(200'000);  // enough for several threads
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = 700 + i * 7919 % 1'000;
  Bytes new_rows(indices.size() * 8);  // each is its own number
  for (std::uint64_t i = 0; i < indices.size(); ++i) std::memcpy(&new_rows[i * 8], &i, 8);
  const pir::Bins bins({{1, rows, 1}});
  const pir::RowChanges alone(indices, new_rows.data(), 8, bins, one);
  const pir::RowChanges together(indices, new_rows.data(), 8, bins, several);
  std::size_t count = 0;
  for (std::uint64_t tile = 0; tile < 6; ++tile) {
    const auto a = alone.in_tile(tile), b = together.in_tile(tile);
    CHECK(std::equal(a.rows.begin(), a.rows.end(), b.rows.begin(), b.rows.end()));
    std::uint64_t last = 0;
    for (std::size_t i = 0; i < a.rows.size(); ++i, ++count) {
      CHECK(std::memcmp(a.bytes + i * 8, b.bytes + i * 8, 8) == 0);
      std::uint64_t number;
      std::memcpy(&number, a.bytes + i * 8, 8);
      CHECK(indices[number] == tile * pir::kTileRows + a.rows[i]);
      CHECK(i == 0 || last < number);
      last = number;
    }
  }
  CHECK(count == indices.size());
  CHECK_THROWS(pir::RowChanges(indices, new_rows.data(), 8, pir::Bins({{1, 1'699, 1}}), one),
               ErrorKind::index);
  for (const auto& [other_rows, row_bytes] : {std::pair{3'001u, 8u}, {3'000u, 7u}}) {
    TestTable table(other_rows, row_bytes, dpf::Output::bit, one);
    CHECK_THROWS(pir::replace_rows(table.extent, alone, table.memory.data(), one, Tier::portable),
                 ErrorKind::argument);
  }
}

void test_thread_pool(Tier) {
  for (unsigned threads : {1u, 2u, 5u}) {
    ThreadPool pool(threads);
    for (std::size_t tasks : {0u, 1u, 4u, 1000u}) {
      std::vector<std::atomic<int>> done(tasks);
      pool.run(tasks, [&](std::size_t task, unsigned worker) {
        CHECK(worker < threads);
        ++done[task];
      });
      CHECK(std::all_of(done.begin(), done.end(), [](const auto& count) { return count == 1; }));
    }
    const auto fail = [](std::size_t, unsigned) { throw Error(ErrorKind::resource, "no"); };
    CHECK_THROWS(pool.run(10, fail), ErrorKind::resource);
    std::atomic<int> after = 0;
    pool.run(10, [&](std::size_t, unsigned) { ++after; });
    CHECK(after == 10);
  }
  CHECK_THROWS(ThreadPool(ThreadPool::kMaxThreads + 1), ErrorKind::argument);
}

void test_keys_are_checked(Tier tier) {
  const dpf::Shape shape{5000, dpf::Output::bit, prg::GeneratorId::aes128};
  const KeyPair pair = make_keys(shape, 17, tier);
  const Bytes& sound = pair.bytes[0];
  CHECK(parse(sound).size() == 1);
  for (std::size_t length = 0; length < sound.size(); ++length) {
    CHECK_THROWS(parse(Bytes(sound.begin(), sound.begin() + static_cast<std::ptrdiff_t>(length))),
                 ErrorKind::malformed_key);
  }
  for (std::size_t byte = 0; byte < dpf::kHeaderBytes; ++byte) {
    if (byte == 8) continue;  // a slightly different domain is another valid key
    Bytes damaged = sound;
    damaged[byte] ^= 0xFF;
    CHECK_THROWS(parse(damaged), ErrorKind::malformed_key);
  }
}

}  // namespace

int main() {
  for (Tier tier : supported_tiers()) {
    for (auto test : {test_aes_known_answer, test_cores_known_answers, test_shares_add_up,
                      test_ranges_and_points_agree, test_answers, test_rows_come_back, test_changes,
                      test_groups_of_changes, test_thread_pool, test_keys_are_checked}) {
      test(tier);
    }
    std::printf("tier %s: good\n", tier_name(tier));
  }
}
