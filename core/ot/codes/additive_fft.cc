#include "ot/codes/additive_fft.h"

#include <cstring>
#include <type_traits>

namespace nescio::ot {
namespace {

// ---- One block, as two words of eight bytes ------------------------------------------------------

using Word = std::uint64_t;

constexpr Word kOnes = 0x0101010101010101ull;

/// The products of eight pairs of bytes in GF(2^8), processing the bits of k from the highest down.
/// Not inlined, because one kernel calls it at about a hundred places.
[[gnu::noinline]] Word multiply_bytes(Word x, Word k) {
  Word product = 0;
  for (int bit = 7; bit >= 0; --bit) {
    const Word carry = (product >> 7) & kOnes;
    product = ((product & (0x7F * kOnes)) << 1) ^ (carry * 0x1B);
    product ^= x & (((k >> bit) & kOnes) * 0xFF);
  }
  return product;
}

struct Vector {
  static constexpr std::size_t kBlocks = 1;
  static constexpr bool kFastProduct = false;
  Block block;

  static Vector load(const Block* from) { return {*from}; }
  void store(Block* to) const { *to = block; }
  static Vector broadcast(const Block& from) { return {from}; }
  static Vector broadcast(std::uint32_t word) {
    const Word both = word * 0x0000000100000001ull;
    return {{both, both}};
  }
  friend Vector operator^(Vector a, Vector b) { return {a.block ^ b.block}; }
};

Vector multiply_bytes(Vector a, Vector b) {
  return {{multiply_bytes(a.block.lo, b.block.lo), multiply_bytes(a.block.hi, b.block.hi)}};
}

/// Moves byte i ^ s of each element to byte i.
template <int s>
Vector swap_bytes(Vector x) {
  for (Word* word : {&x.block.lo, &x.block.hi}) {
    if (s & 1) *word = ((*word >> 8) & 0x00FF00FF00FF00FF) | (*word & 0x00FF00FF00FF00FF) << 8;
    if (s & 2) *word = ((*word >> 16) & 0x0000FFFF0000FFFF) | (*word & 0x0000FFFF0000FFFF) << 16;
  }
  return x;
}

/// Applies the same byte shuffle to every element; the index 0x80 gives zero.
Vector shuffle_bytes(Vector x, unsigned b0, unsigned b1, unsigned b2, unsigned b3) {
  const unsigned from[4] = {b0, b1, b2, b3};
  const auto word = [&](Word w) {
    Word chosen = 0;
    for (int i = 0; i < 4; ++i) {
      if (from[i] < 4) chosen |= ((w >> (8 * from[i])) & 0x000000FF000000FF) << (8 * i);
    }
    return chosen;
  };
  return {{word(x.block.lo), word(x.block.hi)}};
}

/// Broadcasts element `lane` of each block to its four elements.
Vector broadcast_element(Vector x, unsigned lane) {
  const Word word = lane < 2 ? x.block.lo : x.block.hi;
  return Vector::broadcast(static_cast<std::uint32_t>(word >> (32 * (lane % 2))));
}

void transpose(Vector*) {}

}  // namespace
}  // namespace nescio::ot

#include "ot/codes/additive_fft_impl.h"

namespace nescio::ot {
namespace {

/// T(q), the sum of b_{j+1} for the bits j of q.
std::uint32_t twiddle(std::uint32_t q) {
  std::uint32_t t = 0;
  for (unsigned j = 0; q >> j != 0 && j < 31; ++j) {
    if ((q >> j) & 1) t ^= cantor_basis()[j + 1];
  }
  return t;
}

void store_broadcast(const Multiplier& k, std::size_t lane, Block (*to)[4]) {
  std::uint32_t words[4];
  std::memcpy(words, &k, sizeof(words));
  for (int s = 0; s < 4; ++s) {
    const std::uint64_t both = words[s] * 0x0000000100000001ull;
    to[s][lane] = {both, both};
  }
}

void store_element(const Multiplier& k, std::size_t lane, Block* to) {
  std::uint32_t words[4];
  std::memcpy(words, &k, sizeof(words));
  for (int s = 0; s < 4; ++s) {
    std::memcpy(reinterpret_cast<std::uint8_t*>(&to[s]) + 4 * lane, &words[s], sizeof(words[s]));
  }
}

}  // namespace

void make_twiddles(std::uint32_t rows, Twiddles& twiddles) {
  for (unsigned byte = 0; byte < 4; ++byte) {
    for (std::uint32_t v = 0; v < 256; ++v) {
      twiddles.byte_table[byte][v] = multiplier_of(twiddle(v << (8 * byte)));
    }
  }
  for (std::uint32_t lane = 0; lane < 4; ++lane) {
    for (unsigned level = 0; level < 4; ++level) {
      for (std::uint32_t branch = 0; branch < 1u << level; ++branch) {
        store_broadcast(multiplier_of(twiddle((lane << level) + branch)), lane,
                        twiddles.branch_table[(1u << level) - 1 + branch]);
      }
    }
    for (unsigned level = 0; level < kRowBits; ++level) {
      store_element(multiplier_of(twiddle((lane % rows) << level)), lane,
                    twiddles.lane_table[level]);
    }
  }
}

const AdditiveFft& additive_fft(Tier tier) { return NESCIO_PICK(tier, kAdditiveFft); }

namespace portable {
const AdditiveFft kAdditiveFft = kOwnFft;
}  // namespace portable
}  // namespace nescio::ot
