#include "ot/codes/primal.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/error.h"
#include "ot/codes/primal_impl.h"
#include "ot/stream.h"

namespace nescio::ot {
namespace {

/// Rows whose column indices are computed at a time (10 KB), and rows of a task.
constexpr std::size_t kPiece = 256, kTask = std::size_t{1} << 14;

}  // namespace

void encode_primal(std::span<Block> noise, std::span<const Block> seeds,
                   const std::uint8_t code_seed[16], std::uint64_t first_row, ThreadPool& pool,
                   Tier tier) {
  if (seeds.empty() || seeds.size() > kMaxSeeds) {
    throw Error(ErrorKind::argument, "seeds of a primal code: found " +
                                         std::to_string(seeds.size()) + ", expected 1 to 2^31");
  }
  const auto& add_rows = NESCIO_PICK(tier, add_rows);
  const WordStream stream(code_seed, tier);
  pool.run((noise.size() + kTask - 1) / kTask, [&](std::size_t task, unsigned) {
    std::array<std::uint32_t, kPiece * kRowWeight> words;
    const std::size_t end = std::min(noise.size(), (task + 1) * kTask);
    for (std::size_t row = task * kTask; row < end; row += kPiece) {
      const std::size_t rows = std::min(kPiece, end - row);
      stream.words((first_row + row) * kRowWeight, rows * kRowWeight, words.data());
      add_rows(words.data(), seeds.data(), seeds.size(), rows, noise.data() + row);
    }
  });
}

namespace portable {

void add_rows(std::uint32_t* words, const Block* seeds, std::uint64_t k, std::size_t rows,
              Block* noise) {
  add_rows_impl(words, seeds, k, rows, noise);
}

}  // namespace portable
}  // namespace nescio::ot
