#include "ot/codes/expand_convolute.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "ot/stream.h"

namespace nescio::ot {
namespace {

constexpr std::uint8_t kConvolutionKeys[] = {1, 2};
constexpr std::uint8_t kExpanderKey = 3;

WordStream stream_of(const std::uint8_t code_seed[16], std::uint8_t number, Tier tier) {
  std::array<std::uint8_t, 16> key;
  std::memcpy(key.data(), code_seed, key.size());
  key[0] ^= number;
  return WordStream(key.data(), tier);
}

// ---- The convolution -----------------------------------------------------------------------------

/// Blocks that are convolved at a time: they and their masks fit in the second-level cache.
constexpr std::size_t kPiece = 4096;
/// With fewer pieces per thread, starting the thread costs more than it saves.
constexpr std::size_t kMinPiecesPerThread = 8;

using State = std::array<Block, kHistory>;

/// One accumulation over y[0..n-1].
///
/// It is a linear recurrence whose state is the last kHistory results. Several threads work on one
/// segment each. First they compute how the state after a segment depends on the state before it: a
/// bit matrix, which depends on the code only, and a constant. Then each convolves its segment from
/// the true state.
class Convolution {
 public:
  Convolution(const WordStream& masks, Block* y, std::size_t n, Tier tier)
      : masks_(masks), y_(y), n_(n), convolve_(NESCIO_PICK(tier, convolve)) {}

  void run(ThreadPool& pool) {
    const std::size_t pieces = (n_ + kPiece - 1) / kPiece;
    const std::size_t threads = std::min<std::size_t>(pool.threads(), pieces / kMinPiecesPerThread);
    if (threads <= 1) {
      State state{};
      convolve_in_place({0, n_}, state);
    } else {
      run_segments(pool, threads, pieces);
    }
    wrap_around();
  }

 private:
  struct Segment {
    std::size_t begin, end;
  };

  /// Convolves a segment piece by piece; `blocks_at(begin, count)` returns the address of its
  /// blocks.
  template <class BlocksAt>
  void convolve_segment(Segment s, State& state, const BlocksAt& blocks_at) const {
    Buffer<std::uint32_t> masks(kHistory + kPiece);
    for (std::size_t at = s.begin; at < s.end; at += kPiece) {
      const std::size_t count = std::min(kPiece, s.end - at);
      read_masks(at, count, masks.data());
      Block* y = blocks_at(at, count);
      convolve_(masks.data() + kHistory, state.data(), y, count);
      if (count == kPiece) std::copy_n(y + count - kHistory, kHistory, state.data());
    }
  }

  /// Reads the masks of the blocks from at - kHistory to at + count - 1; before block 0 they are
  /// zero.
  void read_masks(std::size_t at, std::size_t count, std::uint32_t* out) const {
    const std::size_t missing = at < kHistory ? kHistory - at : 0;
    std::fill_n(out, missing, 0);
    masks_.words(at + missing - kHistory, kHistory - missing + count, out + missing);
  }

  void convolve_in_place(Segment s, State& state) const {
    convolve_segment(s, state, [&](std::size_t at, std::size_t) { return y_ + at; });
  }

  /// The state after a segment that starts from the zero state. Does not change y.
  State constant(Segment s) const {
    SecretBuffer<Block> scratch(kPiece);
    State state{};
    convolve_segment(s, state, [&](std::size_t at, std::size_t count) {
      std::copy_n(y_ + at, count, scratch.data());
      return scratch.data();
    });
    return state;
  }

  /// The bit matrix that maps the state before a segment of zeros to the state after it: bit k of
  /// block i is set if block i of the state after has block k of the state before as a summand.
  State map(Segment s) const {
    Buffer<Block> scratch(kPiece);
    State state;
    for (std::size_t k = 0; k < kHistory; ++k) state[k] = {std::uint64_t{1} << k, 0};
    convolve_segment(s, state, [&](std::size_t, std::size_t count) {
      std::fill_n(scratch.data(), count, Block{0, 0});
      return scratch.data();
    });
    return state;
  }

  static State apply(const State& map, const State& before, State after) {
    for (std::size_t i = 0; i < kHistory; ++i) {
      for (std::size_t k = 0; k < kHistory; ++k) {
        after[i] ^= block_mask((map[i].lo >> k) & 1) & before[k];
      }
    }
    return after;
  }

  /// Divides y into `threads` + 1 segments. While one thread convolves the first, the others
  /// compute the constants and maps of all others but the last. Then all others are convolved.
  void run_segments(ThreadPool& pool, std::size_t threads, std::size_t pieces) {
    const auto segment = [&](std::size_t s) {
      const auto bound = [&](std::size_t k) { return pieces * k / (threads + 1) * kPiece; };
      return Segment{bound(s), std::min(n_, bound(s + 1))};
    };
    std::vector<State> constants(threads, State{}), maps(threads);
    pool.run(threads, [&](std::size_t s, unsigned) {
      if (s == 0) {
        convolve_in_place(segment(0), constants[0]);
      } else {
        constants[s] = constant(segment(s));
        maps[s] = map(segment(s));
      }
    });
    std::vector<State> before(threads + 1);
    before[1] = constants[0];
    for (std::size_t s = 1; s < threads; ++s) {
      before[s + 1] = apply(maps[s], before[s], constants[s]);
    }
    pool.run(threads,
             [&](std::size_t s, unsigned) { convolve_in_place(segment(s + 1), before[s + 1]); });
    wipe(constants.data(), constants.size() * sizeof(State));
    wipe(before.data(), before.size() * sizeof(State));
  }

  /// Adds the last blocks to the first ones: the code is cyclic.
  void wrap_around() {
    std::array<std::uint32_t, kAccumulatorSize> masks;
    masks_.words(n_ - kAccumulatorSize, kAccumulatorSize, masks.data());
    for (std::size_t i = 0; i < kAccumulatorSize; ++i) {
      const Block last = y_[n_ - kAccumulatorSize + i];
      for (std::size_t j = kAccumulatorSize - 1 - i; j < kAccumulatorSize; ++j) {
        const bool added = j == kAccumulatorSize - 1 || ((masks[i] >> j) & 1) != 0;
        if (added) y_[i + 1 + j - kAccumulatorSize] ^= last;
      }
    }
  }

  const WordStream& masks_;
  Block* y_;
  std::size_t n_;
  void (*convolve_)(const std::uint32_t*, const Block*, Block*, std::size_t);
};

// ---- The expander --------------------------------------------------------------------------------

/// Rows whose indices are computed at a time, and the prefetch distance in rows.
constexpr std::size_t kChunkRows = 512;
constexpr std::size_t kPrefetchRows = 16;
constexpr std::size_t kTaskRows = 64 * kChunkRows;

/// The regular expander: a row of the code sums one block from each of seven parts of y.
class Expander {
 public:
  Expander(const WordStream& words, const Block* y, std::size_t n) : words_(words), y_(y), n_(n) {
    for (std::size_t i = 0; i < kChunkRows + kPrefetchRows; ++i) {
      for (std::size_t j = 0; j < kExpanderWeight; ++j) {
        const std::size_t begin = bound(j);
        begins_[i * kExpanderWeight + j] = static_cast<std::uint32_t>(begin);
        sizes_[i * kExpanderWeight + j] = static_cast<std::uint32_t>(bound(j + 1) - begin);
      }
    }
  }

  /// Writes rows begin to end - 1, XOR the blocks of `in`, to `out`, which may be the same array.
  void add_rows(std::size_t begin, std::size_t end, const Block* in, Block* out) const {
    Indices indices;
    for (std::size_t at = begin; at < end; at += kChunkRows) {
      words_.words(at * kExpanderWeight, indices.size(), indices.data());
      for (std::size_t k = 0; k < indices.size(); ++k) {
        const std::uint64_t product = std::uint64_t{indices[k]} * sizes_[k];
        indices[k] = begins_[k] + static_cast<std::uint32_t>(product >> 32);
      }
      const std::size_t count = std::min(kChunkRows, end - at);
      for (std::size_t i = 0; i < count; ++i)
        out[at + i] = in[at + i] ^ row(&indices[i * kExpanderWeight]);
    }
  }

 private:
  /// Indices of kChunkRows rows and of the kPrefetchRows rows after them, which are prefetched.
  using Indices = std::array<std::uint32_t, (kChunkRows + kPrefetchRows) * kExpanderWeight>;

  std::size_t bound(std::size_t j) const { return j * n_ / kExpanderWeight; }

  Block row(const std::uint32_t* index) const {
    for (std::size_t j = 0; j < kExpanderWeight; ++j) {
      __builtin_prefetch(y_ + index[kPrefetchRows * kExpanderWeight + j]);
    }
    Block sum = y_[index[0]];
    for (std::size_t j = 1; j < kExpanderWeight; ++j) sum ^= y_[index[j]];
    return sum;
  }

  const WordStream& words_;
  const Block* y_;
  std::size_t n_;
  Indices begins_, sizes_;
};

void check(std::size_t blocks) {
  if (blocks % 2 != 0 || blocks / 2 < kMinOutputs || blocks / 2 > (std::uint64_t{1} << 32)) {
    throw Error(ErrorKind::argument, "noise: found " + std::to_string(blocks) +
                                         " blocks, expected an even number from " +
                                         std::to_string(2 * kMinOutputs) + " to 2^33");
  }
}

}  // namespace

void encode_expand_convolute(std::span<Block> noise, const std::uint8_t code_seed[16],
                             ThreadPool& pool, Tier tier, std::span<Block> out) {
  check(noise.size());
  const std::size_t n = noise.size() / 2;
  if (out.size() > n) {
    throw Error(ErrorKind::argument, "out: found " + std::to_string(out.size()) +
                                         " blocks, expected at most " + std::to_string(n));
  }
  Block* y = noise.data() + n;
  for (std::uint8_t number : kConvolutionKeys) {
    const WordStream masks = stream_of(code_seed, number, tier);
    Convolution(masks, y, n, tier).run(pool);
  }
  const WordStream words = stream_of(code_seed, kExpanderKey, tier);
  const Expander expander(words, y, n);
  pool.run((n + kTaskRows - 1) / kTaskRows, [&](std::size_t task, unsigned) {
    const std::size_t begin = task * kTaskRows, end = std::min(n, begin + kTaskRows);
    const std::size_t middle = std::clamp(out.size(), begin, end);
    expander.add_rows(begin, middle, noise.data(), out.data());
    expander.add_rows(middle, end, noise.data(), noise.data());
  });
}

namespace portable {

void convolve(const std::uint32_t* masks, const Block* before, Block* y, std::size_t count) {
  const auto add_to_later = [&](std::uint32_t mask, Block x, std::size_t available, Block* next,
                                std::size_t first) {
    for (std::size_t j = first; j < std::min(available, kAccumulatorSize); ++j) {
      next[j] ^= block_mask(j == kAccumulatorSize - 1 ? 1 : (mask >> j) & 1) & x;
    }
  };
  for (std::size_t s = 0; s < kHistory; ++s) {
    const std::size_t first = kHistory - 1 - s;  // the mask bit of y[0]
    add_to_later(masks[s - kHistory], before[s], first + count, y - first, first);
  }
  for (std::size_t i = 0; i < count; ++i) add_to_later(masks[i], y[i], count - i - 1, y + i + 1, 0);
}

}  // namespace portable
}  // namespace nescio::ot
