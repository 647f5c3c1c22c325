#include "pir/answer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "dpf/shares.h"
#include "ggm/walk.h"

namespace nescio::pir {
namespace {

/// Keys answered in one pass over the table; more take another pass, to bound the memory.
constexpr std::size_t kKeysPerPass = 256;

/// Bytes of shares that a tile holds, over all keys of a pass: half a 1 MB second-level cache.
constexpr std::size_t kShareBytes = 512 << 10;

/// Bytes of rows multiplied at a time with each key in turn: they stay in the first-level cache.
constexpr std::size_t kRowsBytes = 16 << 10;

/// How a share acts on a word of the table, and how results add up.
struct Select {  // shares are masks, addition is XOR
  using Word = std::uint64_t;
  static Word multiply_add(Word sum, Word share, Word row) { return sum ^ (share & row); }
  static Word add(Word a, Word b) { return a ^ b; }
};

template <class W>
struct Multiply {  // arithmetic mod 2^w
  using Word = W;
  static Word multiply_add(Word sum, Word share, Word row) {
    return static_cast<Word>(sum + static_cast<Word>(share * row));
  }
  static Word add(Word a, Word b) { return static_cast<Word>(a + b); }
};

/// sums += sum over rows of shares[r] * rows[r], for rows of `row_bytes` bytes. `sums` has whole
/// words; a row that ends within a word is read as if zeros followed.
template <class Ring>
void multiply_rows(const std::uint8_t* rows, std::size_t count, std::size_t row_bytes,
                   const typename Ring::Word* shares, typename Ring::Word* sums) {
  using Word = typename Ring::Word;
  constexpr std::size_t kColumn = 64 / sizeof(Word);  // a cache line of words, held in registers
  std::size_t byte = 0;
  for (; byte + 64 <= row_bytes; byte += 64, sums += kColumn) {
    Word sum[kColumn], row[kColumn];
    std::copy_n(sums, kColumn, sum);
    for (std::size_t r = 0; r < count; ++r) {
      std::memcpy(row, rows + r * row_bytes + byte, 64);
      for (std::size_t k = 0; k < kColumn; ++k) {
        sum[k] = Ring::multiply_add(sum[k], shares[r], row[k]);
      }
    }
    std::copy_n(sum, kColumn, sums);
  }
  for (; byte < row_bytes; byte += sizeof(Word), ++sums) {
    const std::size_t part = std::min(sizeof(Word), row_bytes - byte);
    for (std::size_t r = 0; r < count; ++r) {
      Word row = 0;
      std::memcpy(&row, rows + r * row_bytes + byte, part);
      *sums = Ring::multiply_add(*sums, shares[r], row);
    }
  }
}

/// The shares of `count` rows from `row` on as words that the ring multiplies with.
template <class Ring>
const typename Ring::Word* read_shares(const std::uint8_t* tile, std::uint64_t row,
                                       std::size_t count, typename Ring::Word* room) {
  if constexpr (std::is_same_v<Ring, Select>) {
    for (std::size_t r = 0; r < count; ++r) {
      room[r] = mask_from_bit((tile[(row + r) / 8] >> ((row + r) % 8)) & 1);
    }
  } else {
    std::memcpy(room, tile + row * sizeof(typename Ring::Word),
                count * sizeof(typename Ring::Word));
  }
  return room;
}

/// One pass over the table for some keys, with arithmetic in `Ring`.
template <class Ring>
class Pass {
  using Word = typename Ring::Word;

 public:
  Pass(const Table& table, std::span<const dpf::Key> keys, ThreadPool& pool, Tier tier)
      : table_(table),
        keys_(keys),
        generator_(prg::generator(keys[0].shape.generator, tier)),
        leaf_rows_(dpf::leaf_elements(keys[0].shape.output)),
        words_((table.row_bytes + sizeof(Word) - 1) / sizeof(Word)),
        block_rows_(std::max<std::size_t>(1, kRowsBytes / table.row_bytes)) {
    for (unsigned w = 0; w < pool.threads(); ++w) workers_.emplace_back(*this, tier);
  }

  void run(ThreadPool& pool, std::uint8_t* out) {
    const std::uint64_t tile_rows = workers_[0].walks[0].chunk() * leaf_rows_;
    const std::uint64_t tiles = (table_.rows + tile_rows - 1) / tile_rows;
    pool.run(tiles, [&](std::size_t tile, unsigned worker) {
      const std::uint64_t begin = tile * tile_rows;
      add_tile(workers_[worker], begin, std::min(begin + tile_rows, table_.rows));
    });
    write_answers(out);
  }

 private:
  struct Worker {
    Worker(const Pass& pass, Tier tier)
        : shares(0), room(pass.block_rows_), sums(pass.keys_.size() * pass.words_) {
      const std::size_t leaves = kShareBytes / (pass.keys_.size() * prg::kLeafBytes);
      const auto chunk_bits = static_cast<unsigned>(std::bit_width(leaves) - 1);
      space = ggm::Walk::Workspace(std::min(chunk_bits, ggm::Walk::kChunkBits));
      for (const dpf::Key& key : pass.keys_) {
        walks.emplace_back(key.tree(tier), std::min(chunk_bits, ggm::Walk::kChunkBits));
      }
      shares = Buffer<dpf::Leaf>(pass.keys_.size() * walks[0].chunk());
      std::fill_n(sums.data(), sums.size(), Word{0});
    }

    std::vector<ggm::Walk> walks;
    ggm::Walk::Workspace space;
    Buffer<dpf::Leaf> shares;
    Buffer<Word> room;
    Buffer<Word> sums;
  };

  /// Adds rows begin..end-1, which one chunk of leaves covers, to the sums of all keys.
  void add_tile(Worker& worker, std::uint64_t begin, std::uint64_t end) {
    const std::uint64_t chunk = worker.walks[0].chunk(), first = begin / leaf_rows_;
    const std::uint64_t last = (end + leaf_rows_ - 1) / leaf_rows_;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const auto nodes = worker.walks[i].nodes(first, last, worker.space);
      dpf::leaf_shares(generator_, keys_[i], nodes.data(), nodes.size(),
                       worker.shares[i * chunk].data());
    }
    for (std::uint64_t row = begin; row < end; row += block_rows_) {
      const std::size_t count = std::min<std::uint64_t>(block_rows_, end - row);
      for (std::size_t i = 0; i < keys_.size(); ++i) {
        const auto* tile = reinterpret_cast<const std::uint8_t*>(&worker.shares[i * chunk]);
        multiply_rows<Ring>(table_.data + row * table_.row_bytes, count, table_.row_bytes,
                            read_shares<Ring>(tile, row - begin, count, worker.room.data()),
                            &worker.sums[i * words_]);
      }
    }
  }

  void write_answers(std::uint8_t* out) {
    Buffer<Word>& total = workers_[0].sums;
    for (std::size_t w = 1; w < workers_.size(); ++w) {
      for (std::size_t k = 0; k < total.size(); ++k) {
        total[k] = Ring::add(total[k], workers_[w].sums[k]);
      }
    }
    const std::size_t bytes = answer_bytes(keys_[0].shape.output, table_.row_bytes);
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      std::memcpy(out + i * bytes, &total[i * words_], bytes);
    }
  }

  Table table_;
  std::span<const dpf::Key> keys_;
  const prg::Generator& generator_;
  std::uint64_t leaf_rows_;
  std::size_t words_;
  std::size_t block_rows_;
  std::vector<Worker> workers_;
};

void check(const Table& table, std::span<const dpf::Key> keys) {
  for (const dpf::Key& key : keys) {
    dpf::Shape expected = keys[0].shape;
    expected.domain = table.rows;
    if (key.shape == expected) continue;
    throw Error("a key is not for this table", key.shape.describe(), expected.describe());
  }
}

}  // namespace

std::size_t answer_bytes(dpf::Output output, std::size_t row_bytes) {
  const std::size_t element = (dpf::element_bits(output) + 7) / 8;
  return (row_bytes + element - 1) / element * element;
}

void answer(const Table& table, std::span<const dpf::Key> keys, std::uint8_t* out, ThreadPool& pool,
            Tier tier) {
  check(table, keys);
  for (std::size_t first = 0; first < keys.size(); first += kKeysPerPass) {
    const auto pass = keys.subspan(first, std::min(kKeysPerPass, keys.size() - first));
    const dpf::Output output = pass[0].shape.output;
    std::uint8_t* to = out + first * answer_bytes(output, table.row_bytes);
    if (output == dpf::Output::bit) {
      Pass<Select>(table, pass, pool, tier).run(pool, to);
    } else {
      dpf::with_word(output,
                     [&]<class W>(W) { Pass<Multiply<W>>(table, pass, pool, tier).run(pool, to); });
    }
  }
}

}  // namespace nescio::pir
