// Bit-serial products under the sanitizers: every tier and kernel, with odd shapes, returns the
// result of the portable code on one thread. That code is compared with the executable
// specification in Python.

#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "bitserial/group_matrix.h"
#include "bitserial/matrix.h"
#include "check.h"

namespace {

using namespace nescio;
using bitserial::BitMatrix;
using bitserial::GroupMatrix;

struct Shape {
  std::size_t rows, columns, batch;
};
constexpr Shape kShapes[] = {{1, 1, 1},      {3, 63, 2},    {16, 64, 3},
                             {65, 65, 16},   {127, 33, 1},  {64, 511, 5},
                             {129, 513, 17}, {200, 127, 4}, {2, 65541, 2}};

/// Reproducible numbers.
class Numbers {
 public:
  std::uint64_t next() {
    state_ = state_ * 0xD1342543DE82EF95 + 0x9E3779B97F4A7C15;
    return state_ ^ (state_ >> 29);
  }

 private:
  std::uint64_t state_ = 1;
};

std::vector<std::uint64_t> make_planes(const Shape& shape, unsigned bits) {
  Numbers numbers;
  const std::size_t words = (shape.columns + 63) / 64, used = shape.columns % 64;
  std::vector<std::uint64_t> planes(bits * shape.rows * words);
  for (std::size_t i = 0; i < planes.size(); ++i) {
    planes[i] = numbers.next();
    if (used != 0 && i % words == words - 1) planes[i] &= (std::uint64_t{1} << used) - 1;
  }
  return planes;
}

struct Product {
  std::vector<std::int64_t> integers;
  std::vector<float> floats;
  bool operator==(const Product&) const = default;
};

/// Products of integers and of floats, in arrays of exactly the required size.
Product multiply(const Shape& shape, unsigned bits, unsigned activation_bits,
                 const BitMatrix& matrix, unsigned threads) {
  Numbers numbers;
  ThreadPool pool(threads);
  std::vector<std::int32_t> x(shape.batch * shape.columns);
  std::vector<float> y(x.size()), scale(shape.rows, 0.25f), bias(shape.rows, 1.5f);
  for (std::size_t j = 0; j < x.size(); ++j) {
    x[j] = static_cast<std::int32_t>(static_cast<std::int64_t>(numbers.next()) >>
                                     (64 - activation_bits));
    y[j] = static_cast<float>(x[j]) / static_cast<float>(bits);
  }
  Product product = {std::vector<std::int64_t>(shape.batch * shape.rows),
                     std::vector<float>(shape.batch * shape.rows)};
  matrix.multiply(x.data(), shape.batch, activation_bits, product.integers.data(), pool);
  matrix.apply(y.data(), shape.batch, activation_bits, scale.data(), bias.data(),
               product.floats.data(), pool);
  return product;
}

void check_shape(const Shape& shape, unsigned bits) {
  const std::vector<std::uint64_t> words = make_planes(shape, bits);
  const bitserial::Planes planes = {words.data(), shape.rows, shape.columns, bits};
  const BitMatrix first(planes, planes.row_words(), Tier::portable, "");
  for (unsigned activation_bits : {8u, 16u, 32u}) {
    const auto expected = multiply(shape, bits, activation_bits, first, 1);
    for (Tier tier : supported_tiers()) {
      std::vector<std::string> names = {""};
      for (const char* name : bitserial::method_names(tier)) names.emplace_back(name);
      for (const std::string& name : names) {
        const BitMatrix matrix(planes, planes.row_words(), tier, name);
        CHECK(multiply(shape, bits, activation_bits, matrix, 3) == expected);
      }
    }
  }
}

/// Products with a scale for each group of columns, in arrays of exactly the required size.
void check_groups(const Shape& shape, unsigned bits, std::size_t group) {
  const std::vector<std::uint64_t> words = make_planes(shape, bits);
  const bitserial::Planes planes = {words.data(), shape.rows, shape.columns, bits};
  Numbers numbers;
  std::vector<std::uint16_t> scales(shape.rows * ((shape.columns + group - 1) / group));
  for (std::uint16_t& scale : scales) {
    scale = static_cast<std::uint16_t>(0x3000 + numbers.next() % 0x1000);
  }
  std::vector<float> x(shape.batch * shape.columns);
  for (float& value : x) value = static_cast<float>(numbers.next() % 1000) - 500;
  for (unsigned activation_bits : {8u, 16u, 32u}) {
    std::vector<float> expected;
    for (Tier tier : supported_tiers()) {
      const GroupMatrix matrix(planes, planes.row_words(), scales.data(), group, tier);
      ThreadPool pool(tier == Tier::portable ? 1 : 3);
      std::vector<float> found(shape.batch * shape.rows);
      matrix.apply(x.data(), shape.batch, activation_bits, nullptr, found.data(), pool);
      if (expected.empty()) expected = found;
      CHECK(found == expected);
    }
  }
}

void check_refusals() {
  const std::uint64_t word = 3;
  const std::uint16_t one = 0x3C00, infinity = 0x7C00;
  CHECK_THROWS(GroupMatrix({&word, 1, 2, 1}, 1, &one, 33, Tier::portable), ErrorKind::argument);
  CHECK_THROWS(GroupMatrix({&word, 1, 2, 1}, 1, &infinity, 32, Tier::portable),
               ErrorKind::argument);
  CHECK_THROWS(BitMatrix({&word, 1, 1, 1}, 1, Tier::portable, ""), ErrorKind::argument);
  CHECK_THROWS(BitMatrix({&word, 1, 2, 1}, 1, Tier::portable, "none"), ErrorKind::argument);
  ThreadPool pool(1);
  for (Tier tier : supported_tiers()) {
    const BitMatrix matrix({&word, 1, 2, 1}, 1, tier, "");
    const std::int32_t large[] = {0, 128};
    std::int64_t y = 0;
    CHECK_THROWS(matrix.multiply(large, 1, 8, &y, pool), ErrorKind::argument);
    const float infinite[] = {0, std::numeric_limits<float>::infinity()}, scale = 1;
    float out = 0;
    CHECK_THROWS(matrix.apply(infinite, 1, 8, &scale, nullptr, &out, pool), ErrorKind::argument);
  }
}

}  // namespace

int main() {
  for (const Shape& shape : kShapes) {
    for (unsigned bits = 1; bits <= bitserial::kMaxBits; ++bits) {
      check_shape(shape, bits);
      if (shape.columns < 1000) check_groups(shape, bits, std::size_t{32} << bits % 3);
    }
  }
  check_refusals();
  std::puts("bitserial: good");
}
