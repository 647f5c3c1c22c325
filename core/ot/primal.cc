#include "ot/primal.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "base/error.h"
#include "ot/stream.h"

namespace nescio::ot {
namespace {

/// Rows whose places are found at a time (10 KB), and rows of a task.
constexpr std::size_t kPiece = 256, kTask = std::size_t{1} << 14;

using Places = std::array<std::uint32_t, kPiece * kRowWeight>;

void to_places(Places& words, std::uint64_t k) {
  if (std::has_single_bit(k)) {
    const auto mask = static_cast<std::uint32_t>(k - 1);
    for (std::uint32_t& word : words) word &= mask;
  } else {
    for (std::uint32_t& word : words) word = static_cast<std::uint32_t>((word * k) >> 32);
  }
}

void add_rows(const Places& places, const Block* seeds, std::size_t rows, Block* noise) {
  const std::uint32_t* place = places.data();
  for (std::size_t row = 0; row < rows; ++row, place += kRowWeight) {
    Block sum = noise[row];
    for (std::size_t j = 0; j < kRowWeight; ++j) sum ^= seeds[place[j]];
    noise[row] = sum;
  }
}

}  // namespace

void encode_primal(std::span<Block> noise, std::span<const Block> seeds,
                   const std::uint8_t code_seed[16], std::uint64_t first_row, ThreadPool& pool,
                   Tier tier) {
  if (seeds.empty() || seeds.size() > std::uint64_t{1} << 32) {
    throw Error(ErrorKind::argument, "the seeds of a primal code: found " +
                                         std::to_string(seeds.size()) + ", expected 1 to 2^32");
  }
  const WordStream stream(code_seed, tier);
  pool.run((noise.size() + kTask - 1) / kTask, [&](std::size_t task, unsigned) {
    Places places;
    const std::size_t end = std::min(noise.size(), (task + 1) * kTask);
    for (std::size_t row = task * kTask; row < end; row += kPiece) {
      stream.words((first_row + row) * kRowWeight, places.size(), places.data());
      to_places(places, seeds.size());
      add_rows(places, seeds.data(), std::min(kPiece, end - row), noise.data() + row);
    }
  });
}

}  // namespace nescio::ot
