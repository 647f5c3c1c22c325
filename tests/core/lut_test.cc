// Makes one-time tables of all sizes under the sanitizers, with transfers from a dealer, and looks them
// up. Python tests compare the parts with the specification.

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "base/cpu.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "check.h"
#include "lut/fields.h"
#include "lut/lookup.h"
#include "lut/tree.h"

namespace {

using namespace nescio;
using lut::Field;
using WordVector = std::vector<std::uint64_t>;

std::mt19937_64 random_words(7);

WordVector drawn(std::size_t count) {
  WordVector words(count);
  for (std::uint64_t& word : words) word = random_words();
  return words;
}

std::vector<std::uint8_t> drawn_bits(std::size_t count) {
  std::vector<std::uint8_t> bits(count);
  for (std::uint8_t& bit : bits) bit = random_words() & 1;
  return bits;
}

lut::Words<const std::uint64_t> view(const WordVector& words, std::size_t width) {
  return {words.data(), width};
}

/// The pads of one transfer for each table; the receiver's are the chosen ones.
struct Pads {
  std::size_t width;
  WordVector zero, one, chosen;

  Pads(const Field& field, const std::vector<std::uint8_t>& choices)
      : width((field.bits() + 63) / 64 + (field.bits() == 0)) {
    zero = drawn(choices.size() * width);
    one = drawn(choices.size() * width);
    for (std::size_t i = 0; i < zero.size(); ++i) {
      chosen.push_back(choices[i / width] ? one[i] : zero[i]);
    }
  }
};

struct Party {
  WordVector shares;
  std::vector<std::uint32_t> numbers;
};

void test_tables(unsigned bits, std::size_t count, ThreadPool& pool) {
  const std::size_t words = std::max<std::size_t>(1, (std::size_t{1} << bits) / 64);
  Party parties[2];
  std::vector<std::uint8_t> own[2] = {drawn_bits(count), drawn_bits(count)};
  for (unsigned p = 0; p < 2; ++p) {
    parties[p].shares.resize(count * words);
    parties[p].numbers.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      parties[p].shares[i * words] = (own[p][i] ^ (p == 0)) | std::uint64_t{own[p][i]} << 1;
    }
  }
  for (unsigned level = 0; level < bits; ++level) {
    if (level != 0) own[0] = drawn_bits(count), own[1] = drawn_bits(count);
    WordVector entries[2];
    std::vector<Pads> pads;
    for (unsigned sender = 0; sender < 2; ++sender) {
      const Field field{(1u << level) - 1, sender == 1 ? bits - 1 - level : 0, level};
      const auto& choices = own[1 - sender];
      pads.emplace_back(field, choices);
      const Pads& pad = pads.back();
      std::vector<std::uint8_t> message(lut::message_bytes(field, count));
      std::uint32_t* sums[2] = {sender == 1 ? parties[1].numbers.data() : nullptr,
                                sender == 1 ? parties[0].numbers.data() : nullptr};
      lut::write_message(field, count,
                         {view(parties[sender].shares, words), own[sender].data(),
                          view(pad.zero, pad.width), view(pad.one, pad.width)},
                         message.data(), sums[0], pool);
      const std::size_t width = (field.entries + 63) / 64;
      entries[1 - sender].resize(count * width + 1);
      lut::read_message(field, count, {choices.data(), view(pad.chosen, pad.width), message.data()},
                        {entries[1 - sender].data(), width}, sums[1], pool);
    }
    if (level == 0) continue;
    const std::size_t width = ((1u << level) - 1 + 63) / 64;
    for (unsigned p = 0; p < 2; ++p) {
      lut::grow(level, count, own[p].data(), view(pads[p].zero, pads[p].width),
                view(entries[p], width), {parties[p].shares.data(), words}, pool);
    }
  }
  // The table of squares, in every tier: the shares of an entry at place d - s.
  const std::size_t size = std::size_t{1} << bits;
  std::vector<std::uint16_t> twice(lut::table_length<std::uint16_t>(bits)), opened(count);
  for (std::size_t j = 0; j < 2 * size; ++j) {
    const std::size_t at = (0 - j) & (size - 1);
    twice[j] = static_cast<std::uint16_t>(at * at);
  }
  for (std::uint16_t& place : opened) place = random_words() & (size - 1);
  for (const Tier tier : supported_tiers()) {
    std::vector<std::uint16_t> found[2] = {std::vector<std::uint16_t>(count),
                                           std::vector<std::uint16_t>(count)};
    for (unsigned p = 0; p < 2; ++p) {
      lut::look_up({bits, twice.data()}, count, view(parties[p].shares, words), opened.data(),
                   found[p].data(), pool, tier);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t place = parties[0].numbers[i] + parties[1].numbers[i];
      const std::size_t at = (opened[i] - place) & (size - 1);
      CHECK((found[0][i] ^ found[1][i]) == static_cast<std::uint16_t>(at * at));
    }
  }
}

/// Both parties' trees for tables of 2^(levels + 7) entries, with products from a dealer.
class TwoTrees {
 public:
  TwoTrees(unsigned levels, std::size_t count) : levels_(levels), words_(std::size_t{2} << levels) {
    for (WordVector& party : nodes_) party.resize(count * words_);
    for (std::size_t i = 0; i < count; ++i) {
      places_.push_back(random_words() % (64 * words_));
      const Block mask = drawn_block(), product = delta_ & block_mask(bit(i, 1));
      const Block rights[] = {mask, mask ^ product};
      const Block lefts[] = {mask ^ own_, mask ^ product ^ own_ ^ delta_};
      for (unsigned p = 0; p < 2; ++p) {
        const std::uint64_t first[] = {lefts[p].lo, lefts[p].hi, rights[p].lo, rights[p].hi};
        std::copy_n(first, 4, &nodes_[p][i * words_]);
      }
    }
  }

  void grow(ThreadPool& pool, Tier tier) {
    const std::size_t count = places_.size();
    WordVector sums[2] = {WordVector(2 * count), WordVector(2 * count)};
    std::vector<std::uint32_t> controls[2];
    for (std::vector<std::uint32_t>& own : controls) own.resize(count);
    for (unsigned level = 1; level <= levels_; ++level) {
      const lut::Trees trees = {level, level == levels_, count};
      for (unsigned p = 0; p < 2; ++p) {
        lut::expand_trees(trees, base_, {nodes_[p].data(), words_}, sums[p].data(),
                          controls[p].data(), pool, tier);
      }
      for (std::size_t i = 0; i < count; ++i) {
        const Block added = trees.are_leaves ? low_vector(i) : lost(i, level + 1);
        sums[0][2 * i] ^= sums[1][2 * i] ^ added.lo;
        sums[0][2 * i + 1] ^= sums[1][2 * i + 1] ^ added.hi;
      }
      for (unsigned p = 0; p < 2; ++p) {
        lut::correct_trees(trees, sums[0].data(), controls[p].data(), {nodes_[p].data(), words_},
                           pool);
      }
    }
  }

  void check() const {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      for (std::size_t w = 0; w < words_; ++w) {
        const bool here = w == places_[i] / 64;
        const std::uint64_t expected = std::uint64_t{here} << places_[i] % 64;
        CHECK((nodes_[0][i * words_ + w] ^ nodes_[1][i * words_ + w]) == expected);
      }
    }
  }

 private:
  static Block drawn_block() { return {random_words(), random_words()}; }

  /// The bit of a path below level - 1.
  bool bit(std::size_t i, unsigned level) const { return places_[i] >> (levels_ + 7 - level) & 1; }
  Block lost(std::size_t i, unsigned level) const { return delta_ & block_mask(!bit(i, level)); }
  Block low_vector(std::size_t i) const {
    const std::uint64_t one = std::uint64_t{1} << places_[i] % 64;
    return places_[i] % 128 < 64 ? Block{one, 0} : Block{0, one};
  }

  unsigned levels_;
  std::size_t words_;
  Block base_ = drawn_block(), own_ = drawn_block(), delta_ = {random_words() | 1, random_words()};
  std::vector<std::size_t> places_;
  WordVector nodes_[2];
};

void test_errors(ThreadPool& pool) {
  const WordVector words(64);
  const std::vector<std::uint8_t> bits(4);
  std::vector<std::uint8_t> message(64);
  const auto write = [&](const Field& field, std::size_t width) {
    lut::write_message(field, 1,
                       {view(words, 32), bits.data(), view(words, width), view(words, width)},
                       message.data(), nullptr, pool);
  };
  CHECK_THROWS(write({5, 0, 0}, 2), ErrorKind::argument);
  CHECK_THROWS(write({4095, 0, 0}, 64), ErrorKind::argument);
  CHECK_THROWS(write({0, 32, 0}, 2), ErrorKind::argument);
  CHECK_THROWS(write({0, 3, 29}, 2), ErrorKind::argument);
  CHECK_THROWS(write({127, 2, 0}, 2), ErrorKind::argument);
  write({127, 1, 0}, 2);
  WordVector nodes(64), sums(2);
  std::uint32_t controls = 0;
  const auto expand = [&](unsigned level, bool are_leaves, std::size_t width) {
    const lut::Trees trees = {level, are_leaves, 1};
    lut::expand_trees(trees, {}, {nodes.data(), width}, sums.data(), &controls, pool,
                      Tier::portable);
  };
  CHECK_THROWS(expand(0, false, 64), ErrorKind::argument);
  CHECK_THROWS(expand(6, true, 256), ErrorKind::argument);
  CHECK_THROWS(expand(4, false, 63), ErrorKind::argument);
  CHECK_THROWS(expand(5, true, 63), ErrorKind::argument);
  expand(4, false, 64);
  expand(5, true, 64);
  std::uint16_t number = 0;
  CHECK_THROWS(lut::pack(0, 1, &number, message.data()), ErrorKind::argument);
  CHECK_THROWS(lut::unpack(17, 1, message.data(), &number), ErrorKind::argument);
}

}  // namespace

int main() {
  ThreadPool pool(2);
  for (unsigned bits = 1; bits <= lut::kMaxTableBits; ++bits) {
    for (const std::size_t count : {0, 1, 63, 200}) test_tables(bits, count, pool);
  }
  test_tables(8, 4100, pool);
  for (const Tier tier : supported_tiers()) {
    for (unsigned levels = 1; levels <= lut::kMaxTreeLevels; ++levels) {
      for (const std::size_t count : {0, 1, 70, 1100}) {
        TwoTrees trees(levels, count);
        trees.grow(pool, tier);
        trees.check();
      }
    }
  }
  test_errors(pool);
  return 0;
}
