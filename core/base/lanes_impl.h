// Moves 128-bit blocks into the lanes of words W (base/word.h) and back. For the *_impl.h that each tier's
// file includes and compiles with its own flags; all of it is private to the file that includes it.
//
// In memory the words of a block are adjacent, but code on lanes needs each word of all blocks in one
// register, so blocks are transposed. A register is a row of blocks; k words make a block, and a k x k
// transposition of words inside each block of k registers turns blocks into words and words into blocks.
// With q blocks in a register, lane k j + e then belongs to block q e + j.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/block.h"
#include "base/word.h"

namespace nescio {
namespace {

/// Words of a block.
template <class Word>
constexpr std::size_t kBlockWords = sizeof(Block) / sizeof(Word);

#if defined(__AVX512F__)

using Register = __m512i;

inline Register load(const Block* from) { return _mm512_loadu_si512(from); }
inline void store(Register x, Block* to) { _mm512_storeu_si512(to, x); }

/// Loads the blocks at from + offsets[0] to from + offsets[3].
inline Register gather(const std::uint8_t* from, const std::size_t* offsets) {
  const auto block = [&](std::size_t i) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + offsets[i]));
  };
  const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(block(0)), block(1), 1);
  const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(block(2)), block(3), 1);
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

inline Register low_words(Register a, Register b) { return _mm512_unpacklo_epi32(a, b); }
inline Register high_words(Register a, Register b) { return _mm512_unpackhi_epi32(a, b); }
inline Register low_halves(Register a, Register b) { return _mm512_unpacklo_epi64(a, b); }
inline Register high_halves(Register a, Register b) { return _mm512_unpackhi_epi64(a, b); }

#elif defined(__AVX2__)

using Register = __m256i;

inline Register load(const Block* from) {
  return _mm256_loadu_si256(reinterpret_cast<const Register*>(from));
}
inline void store(Register x, Block* to) {
  _mm256_storeu_si256(reinterpret_cast<Register*>(to), x);
}

/// Loads the blocks at from + offsets[0] and from + offsets[1].
inline Register gather(const std::uint8_t* from, const std::size_t* offsets) {
  const auto* first = reinterpret_cast<const __m128i*>(from + offsets[0]);
  const auto* second = reinterpret_cast<const __m128i*>(from + offsets[1]);
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(first)),
                                 _mm_loadu_si128(second), 1);
}

inline Register low_words(Register a, Register b) { return _mm256_unpacklo_epi32(a, b); }
inline Register high_words(Register a, Register b) { return _mm256_unpackhi_epi32(a, b); }
inline Register low_halves(Register a, Register b) { return _mm256_unpacklo_epi64(a, b); }
inline Register high_halves(Register a, Register b) { return _mm256_unpackhi_epi64(a, b); }

#endif

#if defined(__AVX2__)

constexpr std::size_t kRegisterBytes = sizeof(Register);
constexpr std::size_t kRegisterBlocks = kRegisterBytes / sizeof(Block);

/// Blocks that are in lanes at once.
template <class Word>
constexpr std::size_t kLanes = kRegisterBytes / sizeof(Word);

template <class Word>
struct Lanes {
  typedef Word Words __attribute__((vector_size(kRegisterBytes)));
};

/// Transposes the words of each block across as many registers as a block has words.
template <class Word>
inline void transpose(Register* x) {
  if constexpr (sizeof(Word) == 8) {
    const Register low = low_halves(x[0], x[1]);
    x[1] = high_halves(x[0], x[1]);
    x[0] = low;
  } else {
    const Register low01 = low_words(x[0], x[1]), low23 = low_words(x[2], x[3]);
    const Register high01 = high_words(x[0], x[1]), high23 = high_words(x[2], x[3]);
    x[0] = low_halves(low01, low23);
    x[1] = high_halves(low01, low23);
    x[2] = low_halves(high01, high23);
    x[3] = high_halves(high01, high23);
  }
}

/// Sets words[w] to word w of kLanes registers' blocks, which are overwritten.
template <class Word>
inline void to_words(Register* x, typename Lanes<Word>::Words* words) {
  transpose<Word>(x);
  for (std::size_t w = 0; w < kBlockWords<Word>; ++w) {
    words[w] = reinterpret_cast<typename Lanes<Word>::Words>(x[w]);
  }
}

/// Sets words[w] to word w of kLanes blocks.
template <class Word>
inline void load_words(const Block* blocks, typename Lanes<Word>::Words* words) {
  Register x[kBlockWords<Word>];
  for (std::size_t e = 0; e < kBlockWords<Word>; ++e) x[e] = load(blocks + kRegisterBlocks * e);
  to_words<Word>(x, words);
}

/// Sets words[w] to word w of the kLanes blocks at from + offsets[i].
template <class Word>
inline void gather_words(const std::uint8_t* from, const std::size_t* offsets,
                         typename Lanes<Word>::Words* words) {
  Register x[kBlockWords<Word>];
  for (std::size_t e = 0; e < kBlockWords<Word>; ++e) {
    x[e] = gather(from, offsets + kRegisterBlocks * e);
  }
  to_words<Word>(x, words);
}

/// The reverse of load_words.
template <class Word>
inline void store_words(const typename Lanes<Word>::Words* words, Block* blocks) {
  Register x[kBlockWords<Word>];
  for (std::size_t w = 0; w < kBlockWords<Word>; ++w) x[w] = reinterpret_cast<Register>(words[w]);
  transpose<Word>(x);
  for (std::size_t e = 0; e < kBlockWords<Word>; ++e) store(x[e], blocks + kRegisterBlocks * e);
}

#else

template <class Word>
constexpr std::size_t kLanes = 1;

template <class Word>
struct Lanes {
  using Words = Word;
};

#endif

/// The same for one block.
template <class Word>
inline void load_words(const Block* block, Word* words) {
  std::memcpy(words, block, sizeof(Block));
}
template <class Word>
inline void gather_words(const std::uint8_t* from, const std::size_t* offset, Word* words) {
  std::memcpy(words, from + *offset, sizeof(Block));
}
template <class Word>
inline void store_words(const Word* words, Block* block) {
  std::memcpy(block, words, sizeof(Block));
}

}  // namespace
}  // namespace nescio
