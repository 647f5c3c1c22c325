#pragma once

// Expand-convolute codes (Raghuraman, Rindal, Tanguy, CRYPTO 2023) on a GPU: systematic, of rate 1/2.
//
// An accumulation adds each block to the one 25 after it and to some of those between, by a public mask:
// each result needs those before it. But what it carries from one place to the next, 25 blocks that are
// still to be added, is a linear map of what came in, the same for every bit of a block. So y is cut
// into segments, and
//
//   1. each runs from nothing carried in, and beside it, as if it were 32 more bits of each block, from
//      the 25 unit vectors on no blocks: that is the segment's map, 25 x 25 bits (MeasureSegments);
//   2. the maps are applied one after the other, which gives what each segment is carried: in groups of
//      segments first, then of the groups, then in the groups again (ChainSegments);
//   3. each runs from what it is carried (RunSegments).
//
// The bits are those of the plain recurrence: XOR has no rounding. What is carried over the end is added
// at the beginning (WrapAround).

#include "ot/codes/expand_convolute.h"
#include "ot/gpu/threads_gpu.h"

namespace nescio::ot {

/// Words of a thing that is carried: a block's, and its row of a segment's map.
inline constexpr unsigned kCarriedWords = kBlockWords + 1;
/// Words that a segment carries over its end: thing r is to be added r places after it.
inline constexpr unsigned kStateWords = kDistance * kCarriedWords;

/// y and its masks, in segments of `length` places, a multiple of kDistance, of which the last may have
/// fewer.
struct Segments {
  std::uint64_t places;
  std::uint64_t length;
  const SharedWord* masks;
  SharedWord* y;  ///< four words a place

  NESCIO_INLINE std::uint64_t count() const { return ceil_div(places, length); }
  NESCIO_INLINE std::uint64_t first(std::uint64_t segment) const { return segment * length; }
  NESCIO_INLINE std::uint64_t end(std::uint64_t segment) const {
    return places - first(segment) < length ? places : first(segment) + length;
  }
};

/// Runs one word of the blocks of a segment; `word` is kBlockWords for a thing that has none there.
/// `carried[r]` is what is to be added r places after the segment's beginning, and at its end at the
/// next place whose distance from the beginning is r modulo kDistance. A code is public, and so are
/// branches by its masks.
template <bool write>
NESCIO_DEVICE inline void convolve(const Segments& of, std::uint64_t segment, unsigned word,
                                   std::uint32_t (&carried)[kDistance]) {
  constexpr unsigned kAhead = 5;  // masks that are read before they are used
  static_assert(kDistance % kAhead == 0);
  const std::uint64_t end = of.end(segment);
  for (std::uint64_t base = of.first(segment); base < end; base += kDistance) {
    const auto left = static_cast<unsigned>(end - base < kDistance ? end - base : kDistance);
    NESCIO_UNROLL
    for (unsigned r = 0; r < kDistance; ++r) {
      if (r < left && word < kBlockWords) carried[r] ^= of.y[(base + r) * kBlockWords + word];
    }
    NESCIO_UNROLL
    for (unsigned some = 0; some < kDistance; some += kAhead) {
      std::uint32_t masks[kAhead];
      NESCIO_UNROLL
      for (unsigned i = 0; i < kAhead; ++i) {
        masks[i] = some + i < left ? of.masks[base + some + i] : 0;
      }
      NESCIO_UNROLL
      for (unsigned i = 0; i < kAhead; ++i) {
        const unsigned r = some + i;
        const std::uint32_t z = carried[r];
        if (write && r < left) of.y[(base + r) * kBlockWords + word] = z;
        NESCIO_UNROLL
        for (unsigned j = 0; j + 1 < kDistance; ++j) {
          if (((masks[i] >> j) & 1) != 0) carried[(r + 1 + j) % kDistance] ^= z;
        }
      }
    }
  }
}

/// What segments carry over their ends if nothing is carried in, and their maps: a thread a word.
struct MeasureSegments : PlainKernel {
  static constexpr unsigned kLeastBlocks = 8;

  Segments of;
  std::uint32_t* states;

  template <class B>
  NESCIO_DEVICE void operator()(B& block) const {
    const std::uint64_t id = item(block);
    if (id >= items) return;
    const std::uint64_t segment = id / kCarriedWords;
    const auto word = static_cast<unsigned>(id % kCarriedWords);
    const bool map = word == kBlockWords;
    std::uint32_t carried[kDistance];
    NESCIO_UNROLL
    for (unsigned r = 0; r < kDistance; ++r) carried[r] = map ? 1u << r : 0;
    convolve<false>(of, segment, word, carried);
    NESCIO_UNROLL
    for (unsigned r = 0; r < kDistance; ++r) {
      states[segment * kStateWords + r * kCarriedWords + word] = carried[r];
    }
  }
};

/// From states that begin with nothing what is truly carried, one after the other in groups: a block of
/// threads a group, a thread a word.
struct ChainSegments {
  static constexpr unsigned kThreads = 128;
  static constexpr bool kTogether = true;
  static_assert(kThreads >= kStateWords);

  std::uint64_t count;
  std::uint64_t group;
  const std::uint32_t* states;
  const std::uint32_t*
      in;  ///< what is carried into each group; null for nothing and the unit vectors
  std::uint32_t* before;  ///< what is carried into each segment, if it is wanted
  std::uint32_t* after;   ///< what each group carries over its end, and its map, if it is wanted

  std::size_t shared_bytes() const { return 2 * kStateWords * sizeof(std::uint32_t); }
  gpu::Grid grid() const { return {static_cast<std::uint32_t>(ceil_div(count, group)), 1}; }

  template <class B>
  NESCIO_DEVICE void operator()(B& block) const {
    auto* x = reinterpret_cast<std::uint32_t*>(block.shared());
    const unsigned id = block.thread(), thing = id / kCarriedWords, word = id % kCarriedWords;
    const bool busy = id < kStateWords;
    std::uint32_t own = word == kBlockWords && busy ? 1u << thing : 0;
    if (in != nullptr && busy) own = in[block.x() * kStateWords + id];
    const std::uint64_t first = block.x() * group;
    const std::uint64_t end = count - first < group ? count : first + group;
    for (std::uint64_t i = first; i < end; ++i) {
      std::uint32_t* now =
          x + (i - first) % 2 * kStateWords;  // two, so that one barrier a step will do
      if (busy) now[id] = own;
      block.sync();
      if (!busy) continue;
      if (before != nullptr) before[i * kStateWords + id] = own;
      const std::uint32_t* state = states + i * kStateWords;
      const std::uint32_t row = state[thing * kCarriedWords + kBlockWords];
      own = word == kBlockWords ? 0 : state[id];
      NESCIO_UNROLL
      for (unsigned r = 0; r < kDistance; ++r) {
        own ^= now[r * kCarriedWords + word] & (0u - ((row >> r) & 1));
      }
    }
    if (after != nullptr && busy) after[block.x() * kStateWords + id] = own;
  }
};

/// Segments from what they are carried to what they become: a thread a word.
struct RunSegments : PlainKernel {
  static constexpr unsigned kLeastBlocks = 8;

  Segments of;
  const std::uint32_t* before;  ///< of each segment; null where there is but one
  std::uint32_t* over;          ///< what the last carries over the end, four words a place

  template <class B>
  NESCIO_DEVICE void operator()(B& block) const {
    const std::uint64_t id = item(block);
    if (id >= items) return;
    const std::uint64_t segment = id / kBlockWords;
    const auto word = static_cast<unsigned>(id % kBlockWords);
    std::uint32_t carried[kDistance];
    NESCIO_UNROLL
    for (unsigned r = 0; r < kDistance; ++r) {
      carried[r] = before == nullptr ? 0 : before[segment * kStateWords + r * kCarriedWords + word];
    }
    convolve<true>(of, segment, word, carried);
    if (segment + 1 != of.count()) return;
    const auto begin = static_cast<unsigned>((of.places - of.first(segment)) % kDistance);
    NESCIO_UNROLL
    for (unsigned r = 0; r < kDistance; ++r) {
      over[(r + kDistance - begin) % kDistance * kBlockWords + word] = carried[r];
    }
  }
};

/// Adds what is carried over the end at the beginning: a thread a word.
struct WrapAround : PlainKernel {
  const std::uint32_t* over;
  SharedWord* y;

  template <class B>
  NESCIO_DEVICE void operator()(B& block) const {
    if (item(block) < items) y[item(block)] ^= over[item(block)];
  }
};

/// Parts of y, of which each output takes one block.
inline constexpr unsigned kGathered = 7;
/// Outputs that begin a block of the stream: seven blocks of it.
inline constexpr unsigned kExpandRows = 4;

/// out[i] ^= a block of each part of y, at places that a public stream names: a thread four outputs.
struct ExpandRows : AesKernel {
  prg::AesColumns keys;
  std::uint64_t bounds[kGathered + 1];  ///< of the parts
  const Block* y;
  Block* out;
  std::uint64_t count;

  template <class B>
  NESCIO_DEVICE void operator()(B& block) const {
    const prg::AesGpu cipher = aes(block);
    for_each_item(block, tiles, [&](std::uint64_t item) { rows(cipher, item); });
  }

 private:
  NESCIO_DEVICE void rows(const prg::AesGpu& cipher, std::uint64_t item) const {
    Block sums[kExpandRows] = {};
    NESCIO_UNROLL
    for (unsigned i = 0; i < kGathered; ++i) {
      const Block four = cipher.encrypt(keys, {item * kGathered + i, 0});
      NESCIO_UNROLL
      for (unsigned j = 0; j < kBlockWords; ++j) {
        const unsigned word = i * kBlockWords + j, part = word % kGathered;
        const std::uint64_t size = bounds[part + 1] - bounds[part];
        sums[word / kGathered] ^= y[bounds[part] + ((word_of(four, j) * size) >> 32)];
      }
    }
    NESCIO_UNROLL
    for (unsigned i = 0; i < kExpandRows; ++i) {
      const std::uint64_t row = item * kExpandRows + i;
      if (row < count) out[row] ^= sums[i];
    }
  }
};

}  // namespace nescio::ot
