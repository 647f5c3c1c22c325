// The engine from end to end, for the sanitizers: every tier, generator, output and odd size runs
// here once with every access watched. What the results mean is tested from Python, against the
// executable specification.

#include <algorithm>
#include <atomic>
#include <cstring>
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

namespace {

using namespace nescio;
using Bytes = std::vector<std::uint8_t>;

constexpr dpf::Output kOutputs[] = {dpf::Output::bit, dpf::Output::u8, dpf::Output::u32,
                                    dpf::Output::u64, dpf::Output::u128};
constexpr prg::GeneratorId kGenerators[] = {prg::GeneratorId::aes128, prg::GeneratorId::chacha20};
constexpr std::uint64_t kDomains[] = {1, 2, 127, 513, 5000};

struct KeyPair {
  Bytes bytes[2];
  dpf::Key key[2];
};

KeyPair make_keys(const dpf::Shape& shape, std::uint64_t alpha, Tier tier) {
  KeyPair pair;
  for (Bytes& bytes : pair.bytes) bytes.resize(shape.key_bytes());
  const Block payload = {1, 0};
  dpf::generate(shape, {&alpha, 1}, {&payload, 1}, pair.bytes[0].data(), pair.bytes[1].data(),
                tier);
  for (int party = 0; party < 2; ++party) pair.key[party] = dpf::parse_key(pair.bytes[party]);
  return pair;
}

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

void test_shares_add_up(Tier tier) {
  ThreadPool pool(2);
  for (auto output : kOutputs) {
    for (auto generator : kGenerators) {
      for (std::uint64_t domain : kDomains) {
        const dpf::Shape shape{domain, output, generator};
        const KeyPair pair = make_keys(shape, domain / 2, tier);
        const std::size_t bytes = dpf::share_bytes(output, domain);
        Bytes shares[2] = {Bytes(bytes), Bytes(bytes)}, sums(bytes);
        for (int party = 0; party < 2; ++party) {
          dpf::evaluate_range({&pair.key[party], 1}, 0, domain, shares[party].data(), pool, tier);
        }
        dpf::combine(output, shares[0].data(), shares[1].data(), bytes, sums.data());
        Bytes expected(bytes);
        const std::uint64_t bit = domain / 2 * dpf::element_bits(output);
        expected[bit / 8] = static_cast<std::uint8_t>(1 << (bit % 8));
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
  dpf::evaluate_range({pair.key, 1}, 0, shape.domain, all.data(), pool, tier);
  for (std::uint64_t start : {0u, 1u, 63u, 64u, 65u, 69'990u}) {
    for (std::uint64_t length : {0u, 1u, 7u, 11u}) {
      Bytes part(length), singles(length);
      dpf::evaluate_range({pair.key, 1}, start, start + length, part.data(), pool, tier);
      std::vector<std::uint64_t> points;
      for (std::uint64_t i = 0; i < length; ++i) points.push_back(start + i);
      dpf::evaluate_points({pair.key, 1}, points, singles.data(), pool, tier);
      CHECK(std::equal(part.begin(), part.end(), all.begin() + static_cast<std::ptrdiff_t>(start)));
      CHECK(part == singles);
    }
  }
  CHECK_THROWS(dpf::evaluate_range({pair.key, 1}, 0, 70'002, all.data(), pool, tier),
               ErrorKind::index);
}

void test_answers(Tier tier) {
  ThreadPool pool(2);
  for (auto output : kOutputs) {
    for (std::size_t row_bytes : {1u, 7u, 64u, 200u}) {
      const std::uint64_t rows = 1'500, wanted = 1'499;
      Bytes table(rows * row_bytes);
      for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::uint8_t>(i * 37);
      const KeyPair pair = make_keys({rows, output, prg::GeneratorId::aes128}, wanted, tier);
      const std::size_t bytes = pir::answer_bytes(output, row_bytes);
      Bytes answers[2] = {Bytes(bytes), Bytes(bytes)}, sums(bytes);
      for (int party = 0; party < 2; ++party) {
        pir::answer({table.data(), rows, row_bytes}, {&pair.key[party], 1}, answers[party].data(),
                    pool, tier);
      }
      dpf::combine(output, answers[0].data(), answers[1].data(), bytes, sums.data());
      CHECK(std::memcmp(sums.data(), &table[wanted * row_bytes], row_bytes) == 0);
    }
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
  CHECK_THROWS(ThreadPool(ThreadPool::kMostThreads + 1), ErrorKind::argument);
}

void test_keys_are_checked(Tier tier) {
  const dpf::Shape shape{5000, dpf::Output::bit, prg::GeneratorId::aes128};
  const KeyPair pair = make_keys(shape, 17, tier);
  for (std::size_t length = 0; length < pair.bytes[0].size(); ++length) {
    CHECK_THROWS(dpf::parse_key({pair.bytes[0].data(), length}), ErrorKind::malformed_key);
  }
  for (std::size_t byte = 0; byte < dpf::kHeaderBytes; ++byte) {
    if (byte == 8) continue;  // a domain of a few points more or less makes another valid key
    Bytes damaged = pair.bytes[0];
    damaged[byte] ^= 0xFF;
    CHECK_THROWS(dpf::parse_key(damaged), ErrorKind::malformed_key);
  }
}

}  // namespace

int main() {
  for (Tier tier : supported_tiers()) {
    for (auto test : {test_aes_known_answer, test_shares_add_up, test_ranges_and_points_agree,
                      test_answers, test_thread_pool, test_keys_are_checked}) {
      test(tier);
    }
    std::printf("tier %s: good\n", tier_name(tier));
  }
}
