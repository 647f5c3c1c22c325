#pragma once

// Expand-convolute codes (Raghuraman, Rindal, Tanguy, CRYPTO 2023) on a GPU: systematic, of rate
// 1/2.
//
// An accumulation adds each block to the one 25 after it and, as a public mask says, to some of
// those in between, so that each result depends on the results before it. The state between two
// blocks is 25 sums that are still to be added to later blocks. The state after a segment is a
// linear map of the state before it plus a constant, with the same map for every bit of a block. So
// y is divided into segments:
//
//   1. MeasureSegments runs each segment from the zero state. In an extra fifth word of each entry
//      of the state, it runs the segment on zero blocks from the 25 unit vectors, which gives the
//      25 x 25 bit map of the segment.
//   2. ChainSegments applies the maps in order, which gives the state before each segment: first
//      within groups of segments, then over the groups, then within the groups again.
//   3. RunSegments runs each segment from its true state.
//
// The result equals that of the sequential recurrence, because XOR is exact. WrapAround adds the
// state after the last segment to the first blocks.

#include "ot/codes/expand_convolute.h"
#include "ot/gpu/threads_gpu.h"

namespace nescio::ot {

/// Words of an entry of the state: a block, and a row of the segment's map.
inline constexpr unsigned kEntryWords = kBlockWords + 1;
/// Words of the state after a segment: entry r is to be added to the block r after its end.
inline constexpr unsigned kStateWords = kAccumulatorSize * kEntryWords;

/// y and its masks, in segments of `length` blocks, a multiple of kAccumulatorSize. The last may be
/// shorter.
struct Segments {
  std::uint64_t places;
  std::uint64_t length;
  const SharedWord* masks;
  SharedWord* y;  ///< four words per block

  NESCIO_INLINE std::uint64_t count() const { return ceil_div(places, length); }
  NESCIO_INLINE std::uint64_t first(std::uint64_t segment) const { return segment * length; }
  NESCIO_INLINE std::uint64_t end(std::uint64_t segment) const {
    return places - first(segment) < length ? places : first(segment) + length;
  }
};

/// Runs a segment on one word of its blocks, or on zeros if `word` is kBlockWords. Before the
/// segment, `state[r]` is to be added to its block r; after it, to the next block whose index in
/// the segment is r modulo kAccumulatorSize. Branches on masks are safe: the code is public.
template <bool write>
NESCIO_DEVICE inline void convolve(const Segments& of, std::uint64_t segment, unsigned word,
                                   std::uint32_t (&state)[kAccumulatorSize]) {
  constexpr unsigned kMasksAhead = 5;  // masks that are loaded ahead
  static_assert(kAccumulatorSize % kMasksAhead == 0);
  const std::uint64_t end = of.end(segment);
  for (std::uint64_t base = of.first(segment); base < end; base += kAccumulatorSize) {
    const auto left =
        static_cast<unsigned>(end - base < kAccumulatorSize ? end - base : kAccumulatorSize);
    NESCIO_UNROLL
    for (unsigned r = 0; r < kAccumulatorSize; ++r) {
      if (r < left && word < kBlockWords) state[r] ^= of.y[(base + r) * kBlockWords + word];
    }
    NESCIO_UNROLL
    for (unsigned begin = 0; begin < kAccumulatorSize; begin += kMasksAhead) {
      std::uint32_t masks[kMasksAhead];
      NESCIO_UNROLL
      for (unsigned i = 0; i < kMasksAhead; ++i) {
        masks[i] = begin + i < left ? of.masks[base + begin + i] : 0;
      }
      NESCIO_UNROLL
      for (unsigned i = 0; i < kMasksAhead; ++i) {
        const unsigned r = begin + i;
        const std::uint32_t z = state[r];
        if (write && r < left) of.y[(base + r) * kBlockWords + word] = z;
        NESCIO_UNROLL
        for (unsigned j = 0; j + 1 < kAccumulatorSize; ++j) {
          if (((masks[i] >> j) & 1) != 0) state[(r + 1 + j) % kAccumulatorSize] ^= z;
        }
      }
    }
  }
}

/// Computes the states after the segments from zero states, and the maps of the segments, one
/// thread per word.
struct MeasureSegments : PlainKernel {
  static constexpr unsigned kMinBlocks = 8;

  Segments of;
  std::uint32_t* states;

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const std::uint64_t id = item(block);
    if (id >= items) return;
    const std::uint64_t segment = id / kEntryWords;
    const auto word = static_cast<unsigned>(id % kEntryWords);
    const bool map = word == kBlockWords;
    std::uint32_t state[kAccumulatorSize];
    NESCIO_UNROLL
    for (unsigned r = 0; r < kAccumulatorSize; ++r) state[r] = map ? 1u << r : 0;
    convolve<false>(of, segment, word, state);
    NESCIO_UNROLL
    for (unsigned r = 0; r < kAccumulatorSize; ++r) {
      states[segment * kStateWords + r * kEntryWords + word] = state[r];
    }
  }
};

/// Computes true states from the states and maps of MeasureSegments, sequentially within a group:
/// one block of threads per group, one thread per word of the state.
struct ChainSegments {
  static constexpr unsigned kThreads = 128;
  static constexpr bool kCooperative = true;
  static_assert(kThreads >= kStateWords);

  std::uint64_t count;
  std::uint64_t group;
  const std::uint32_t* states;
  const std::uint32_t* in;  ///< the state before each group; null for zero and the unit vectors
  std::uint32_t* before;    ///< out: the state before each segment, or null
  std::uint32_t* after;     ///< out: the state after each group, and its map, or null

  std::size_t shared_bytes() const { return 2 * kStateWords * sizeof(std::uint32_t); }
  gpu::Grid grid() const { return {static_cast<std::uint32_t>(ceil_div(count, group)), 1}; }

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    auto* x = reinterpret_cast<std::uint32_t*>(block.shared());
    const unsigned id = block.thread(), entry = id / kEntryWords, word = id % kEntryWords;
    const bool busy = id < kStateWords;
    std::uint32_t own = word == kBlockWords && busy ? 1u << entry : 0;
    if (in != nullptr && busy) own = in[block.x() * kStateWords + id];
    const std::uint64_t first = block.x() * group;
    const std::uint64_t end = count - first < group ? count : first + group;
    for (std::uint64_t i = first; i < end; ++i) {
      // Two buffers in turn, so that one barrier per step is enough.
      std::uint32_t* current = x + (i - first) % 2 * kStateWords;
      if (busy) current[id] = own;
      block.sync();
      if (!busy) continue;
      if (before != nullptr) before[i * kStateWords + id] = own;
      const std::uint32_t* state = states + i * kStateWords;
      const std::uint32_t row = state[entry * kEntryWords + kBlockWords];
      own = word == kBlockWords ? 0 : state[id];
      NESCIO_UNROLL
      for (unsigned r = 0; r < kAccumulatorSize; ++r) {
        own ^= current[r * kEntryWords + word] & (0u - ((row >> r) & 1));
      }
    }
    if (after != nullptr && busy) after[block.x() * kStateWords + id] = own;
  }
};

/// Runs segments from their true states, one thread per word.
struct RunSegments : PlainKernel {
  static constexpr unsigned kMinBlocks = 8;

  Segments of;
  const std::uint32_t* before;  ///< the state before each segment; null if there is only one
  std::uint32_t* end_state;     ///< out: the state after the last segment, four words per block

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const std::uint64_t id = item(block);
    if (id >= items) return;
    const std::uint64_t segment = id / kBlockWords;
    const auto word = static_cast<unsigned>(id % kBlockWords);
    std::uint32_t state[kAccumulatorSize];
    NESCIO_UNROLL
    for (unsigned r = 0; r < kAccumulatorSize; ++r) {
      state[r] = before == nullptr ? 0 : before[segment * kStateWords + r * kEntryWords + word];
    }
    convolve<true>(of, segment, word, state);
    if (segment + 1 != of.count()) return;
    const auto begin = static_cast<unsigned>((of.places - of.first(segment)) % kAccumulatorSize);
    NESCIO_UNROLL
    for (unsigned r = 0; r < kAccumulatorSize; ++r) {
      end_state[(r + kAccumulatorSize - begin) % kAccumulatorSize * kBlockWords + word] = state[r];
    }
  }
};

/// Adds the state after the last segment to the first blocks, one thread per word.
struct WrapAround : PlainKernel {
  const std::uint32_t* end_state;
  SharedWord* y;

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    if (item(block) < items) y[item(block)] ^= end_state[item(block)];
  }
};

/// Outputs of a thread. Their indices are seven whole blocks of the public stream.
inline constexpr unsigned kExpanderRows = 4;

/// XORs one block of each part of y into out[i], at indices from a public stream: four outputs per
/// thread.
struct ExpandRows : AesKernel {
  prg::AesColumns keys;
  std::uint64_t bounds[kExpanderWeight + 1];  ///< first block of each part, and the end
  const Block* y;
  Block* out;
  std::uint64_t count;

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const prg::AesGpu cipher = aes(block);
    for_each_item(block, tiles, [&](std::uint64_t item) { rows(cipher, item); });
  }

 private:
  NESCIO_DEVICE void rows(const prg::AesGpu& cipher, std::uint64_t item) const {
    Block sums[kExpanderRows] = {};
    NESCIO_UNROLL
    for (unsigned i = 0; i < kExpanderWeight; ++i) {
      const Block four = cipher.encrypt(keys, {item * kExpanderWeight + i, 0});
      NESCIO_UNROLL
      for (unsigned j = 0; j < kBlockWords; ++j) {
        const unsigned word = i * kBlockWords + j, part = word % kExpanderWeight;
        const std::uint64_t size = bounds[part + 1] - bounds[part];
        sums[word / kExpanderWeight] ^= y[bounds[part] + ((word_of(four, j) * size) >> 32)];
      }
    }
    NESCIO_UNROLL
    for (unsigned i = 0; i < kExpanderRows; ++i) {
      const std::uint64_t row = item * kExpanderRows + i;
      if (row < count) out[row] ^= sums[i];
    }
  }
};

}  // namespace nescio::ot
