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

WordStream own_stream(const std::uint8_t code_seed[16], std::uint8_t number, Tier tier) {
  std::array<std::uint8_t, 16> key;
  std::memcpy(key.data(), code_seed, key.size());
  key[0] ^= number;
  return WordStream(key.data(), tier);
}

// ---- The convolution -----------------------------------------------------------------------------

/// Blocks that are convolved at a time: they and their masks fit in the second-level cache.
constexpr std::size_t kPiece = 4096;
/// With fewer pieces per thread, starting the thread costs more than it saves.
constexpr std::size_t kFewestPieces = 8;

using State = std::array<Block, kLookBack>;

/// One accumulation over y[0..n-1].
///
/// It is a linear recurrence whose state is the last kLookBack results. Several threads work on one
/// segment each. First they compute how the state after a segment depends on the state before it: a
/// bit matrix, which depends on the code only, and a constant. Then each convolves its segment from
/// the true state.
class Convolution {
 public:
  Convolution(const WordStream& masks, Block* y, std::size_t n, Tier tier)
      : masks_(masks), y_(y), n_(n), convolve_(NESCIO_PICK(tier, convolve)) {}

  void run(ThreadPool& pool) {
    const std::size_t pieces = (n_ + kPiece - 1) / kPiece;
    const std::size_t threads = std::min<std::size_t>(pool.threads(), pieces / kFewestPieces);
    if (threads <= 1) {
      State state{};
      in_place({0, n_}, state);
    } else {
      run_segments(pool, threads, pieces);
    }
    wrap();
  }

 private:
  struct Segment {
    std::size_t begin, end;
  };

  /// Convolves a segment piece by piece; `piece(begin, count)` returns the address of its blocks.
  template <class Piece>
  void segment(Segment s, State& state, const Piece& piece) const {
    Buffer<std::uint32_t> masks(kLookBack + kPiece);
    for (std::size_t at = s.begin; at < s.end; at += kPiece) {
      const std::size_t count = std::min(kPiece, s.end - at);
      read_masks(at, count, masks.data());
      Block* y = piece(at, count);
      convolve_(masks.data() + kLookBack, state.data(), y, count);
      if (count == kPiece) std::copy_n(y + count - kLookBack, kLookBack, state.data());
    }
  }

  /// Reads the masks of the blocks from at - kLookBack to at + count - 1; before block 0 they are
  /// zero.
  void read_masks(std::size_t at, std::size_t count, std::uint32_t* out) const {
    const std::size_t missing = at < kLookBack ? kLookBack - at : 0;
    std::fill_n(out, missing, 0);
    masks_.words(at + missing - kLookBack, kLookBack - missing + count, out + missing);
  }

  void in_place(Segment s, State& state) const {
    segment(s, state, [&](std::size_t at, std::size_t) { return y_ + at; });
  }

  /// The state after a segment that starts from the zero state. Does not change y.
  State constant(Segment s) const {
    SecretBuffer<Block> room(kPiece);
    State state{};
    segment(s, state, [&](std::size_t at, std::size_t count) {
      std::copy_n(y_ + at, count, room.data());
      return room.data();
    });
    return state;
  }

  /// The bit matrix that maps the state before a segment of zeros to the state after it: bit k of
  /// block i is set if block i of the state after has block k of the state before as a summand.
  State map(Segment s) const {
    Buffer<Block> room(kPiece);
    State state;
    for (std::size_t k = 0; k < kLookBack; ++k) state[k] = {std::uint64_t{1} << k, 0};
    segment(s, state, [&](std::size_t, std::size_t count) {
      std::fill_n(room.data(), count, Block{0, 0});
      return room.data();
    });
    return state;
  }

  static State apply(const State& map, const State& before, State after) {
    for (std::size_t i = 0; i < kLookBack; ++i) {
      for (std::size_t k = 0; k < kLookBack; ++k) {
        after[i] ^= block_mask((map[i].lo >> k) & 1) & before[k];
      }
    }
    return after;
  }

  /// Divides y into `threads` + 1 segments. While one thread convolves the first, the others
  /// compute the constants and maps of all others but the last. Then all others are convolved.
  void run_segments(ThreadPool& pool, std::size_t threads, std::size_t pieces) {
    const auto own = [&](std::size_t s) {
      const auto bound = [&](std::size_t k) { return pieces * k / (threads + 1) * kPiece; };
      return Segment{bound(s), std::min(n_, bound(s + 1))};
    };
    std::vector<State> constants(threads, State{}), maps(threads);
    pool.run(threads, [&](std::size_t s, unsigned) {
      if (s == 0) {
        in_place(own(0), constants[0]);
      } else {
        constants[s] = constant(own(s));
        maps[s] = map(own(s));
      }
    });
    std::vector<State> before(threads + 1);
    before[1] = constants[0];
    for (std::size_t s = 1; s < threads; ++s) {
      before[s + 1] = apply(maps[s], before[s], constants[s]);
    }
    pool.run(threads, [&](std::size_t s, unsigned) { in_place(own(s + 1), before[s + 1]); });
    wipe(constants.data(), constants.size() * sizeof(State));
    wipe(before.data(), before.size() * sizeof(State));
  }

  /// Adds the last blocks to the first ones: the code is cyclic.
  void wrap() {
    std::array<std::uint32_t, kDistance> masks;
    masks_.words(n_ - kDistance, kDistance, masks.data());
    for (std::size_t i = 0; i < kDistance; ++i) {
      const Block last = y_[n_ - kDistance + i];
      for (std::size_t j = kDistance - 1 - i; j < kDistance; ++j) {
        const bool added = j == kDistance - 1 || ((masks[i] >> j) & 1) != 0;
        if (added) y_[i + 1 + j - kDistance] ^= last;
      }
    }
  }

  const WordStream& masks_;
  Block* y_;
  std::size_t n_;
  void (*convolve_)(const std::uint32_t*, const Block*, Block*, std::size_t);
};

// ---- The expander --------------------------------------------------------------------------------

constexpr std::size_t kParts = 7;
/// Rows whose indices are computed at a time, and the prefetch distance in rows.
constexpr std::size_t kRows = 512;
constexpr std::size_t kAhead = 16;
constexpr std::size_t kTaskRows = 64 * kRows;

/// The regular expander: a row of the code sums one block from each of seven parts of y.
class Expander {
 public:
  Expander(const WordStream& words, const Block* y, std::size_t n) : words_(words), y_(y), n_(n) {
    for (std::size_t i = 0; i < kRows + kAhead; ++i) {
      for (std::size_t j = 0; j < kParts; ++j) {
        const std::size_t begin = bound(j);
        begins_[i * kParts + j] = static_cast<std::uint32_t>(begin);
        sizes_[i * kParts + j] = static_cast<std::uint32_t>(bound(j + 1) - begin);
      }
    }
  }

  /// Writes rows begin to end - 1, XOR the blocks of `in`, to `out`, which may be the same array.
  void add_rows(std::size_t begin, std::size_t end, const Block* in, Block* out) const {
    Indices indices;
    for (std::size_t at = begin; at < end; at += kRows) {
      words_.words(at * kParts, indices.size(), indices.data());
      for (std::size_t k = 0; k < indices.size(); ++k) {
        const std::uint64_t product = std::uint64_t{indices[k]} * sizes_[k];
        indices[k] = begins_[k] + static_cast<std::uint32_t>(product >> 32);
      }
      const std::size_t count = std::min(kRows, end - at);
      for (std::size_t i = 0; i < count; ++i) out[at + i] = in[at + i] ^ row(&indices[i * kParts]);
    }
  }

 private:
  /// Indices of kRows rows and of the kAhead rows after them, which are prefetched.
  using Indices = std::array<std::uint32_t, (kRows + kAhead) * kParts>;

  std::size_t bound(std::size_t j) const { return j * n_ / kParts; }

  Block row(const std::uint32_t* index) const {
    for (std::size_t j = 0; j < kParts; ++j) {
      __builtin_prefetch(y_ + index[kAhead * kParts + j]);
    }
    Block sum = y_[index[0]];
    for (std::size_t j = 1; j < kParts; ++j) sum ^= y_[index[j]];
    return sum;
  }

  const WordStream& words_;
  const Block* y_;
  std::size_t n_;
  Indices begins_, sizes_;
};

void check(std::size_t blocks) {
  if (blocks % 2 != 0 || blocks / 2 < kFewestOutputs || blocks / 2 > (std::uint64_t{1} << 32)) {
    throw Error(ErrorKind::argument, "noise: found " + std::to_string(blocks) +
                                         " blocks, expected an even number from " +
                                         std::to_string(2 * kFewestOutputs) + " to 2^33");
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
    const WordStream masks = own_stream(code_seed, number, tier);
    Convolution(masks, y, n, tier).run(pool);
  }
  const WordStream words = own_stream(code_seed, kExpanderKey, tier);
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
  const auto push = [&](std::uint32_t mask, Block x, std::size_t room, Block* next,
                        std::size_t first) {
    for (std::size_t j = first; j < std::min(room, kDistance); ++j) {
      next[j] ^= block_mask(j == kDistance - 1 ? 1 : (mask >> j) & 1) & x;
    }
  };
  for (std::size_t s = 0; s < kLookBack; ++s) {
    const std::size_t first = kLookBack - 1 - s;  // the mask bit of y[0]
    push(masks[s - kLookBack], before[s], first + count, y - first, first);
  }
  for (std::size_t i = 0; i < count; ++i) push(masks[i], y[i], count - i - 1, y + i + 1, 0);
}

}  // namespace portable
}  // namespace nescio::ot
