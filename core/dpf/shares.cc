#include "dpf/shares.h"

#include <bit>
#include <cstring>

namespace nescio::dpf {
namespace {

template <class W>
constexpr std::size_t kWords = prg::kLeafBytes / sizeof(W);

template <class W>
using Words = std::array<W, kWords<W>>;

template <class W>
W as_word(Block payload) {
  return static_cast<W>((u128{payload.hi} << 64) | payload.lo);
}

Leaf unit_bits(std::uint64_t position, std::uint64_t payload) {
  Words<std::uint64_t> words;
  for (std::size_t k = 0; k < words.size(); ++k) {
    words[k] = mask_from_bit(equal_bit(k, position / 64)) & ((payload & 1) << (position % 64));
  }
  return std::bit_cast<Leaf>(words);
}

}  // namespace

Leaf unit_leaf(Output output, std::uint64_t position, Block payload) {
  if (output == Output::bit) return unit_bits(position, payload.lo);
  return with_word(output, [&]<class W>(W) {
    Words<W> words;
    for (std::size_t k = 0; k < words.size(); ++k) {
      words[k] = static_cast<W>(-static_cast<W>(equal_bit(k, position))) & as_word<W>(payload);
    }
    return std::bit_cast<Leaf>(words);
  });
}

Leaf leaf_correction(Output output, const Leaf& unit, const Leaf& own0, const Leaf& own1,
                     std::uint64_t t1) {
  if (output == Output::bit) {
    Leaf correction;
    for (std::size_t j = 0; j < correction.size(); ++j) {
      correction[j] = unit[j] ^ own0[j] ^ own1[j];
    }
    return correction;
  }
  return with_word(output, [&]<class W>(W) {
    const auto u = std::bit_cast<Words<W>>(unit), x = std::bit_cast<Words<W>>(own0),
               y = std::bit_cast<Words<W>>(own1);
    const W sign = static_cast<W>(-static_cast<W>(t1));
    Words<W> correction;
    for (std::size_t k = 0; k < correction.size(); ++k) {
      correction[k] = static_cast<W>((static_cast<W>(u[k] - x[k] + y[k]) ^ sign) - sign);
    }
    return std::bit_cast<Leaf>(correction);
  });
}

LeafShares::LeafShares(const Keys& keys, Tier tier)
    : keys_(keys), generator_(prg::generator(keys.shape().generator, tier)), tier_(tier) {}

void LeafShares::write(std::size_t first, std::size_t count, const Block* nodes,
                       std::size_t per_key, Block* shares) const {
  const Output output = keys_.shape().output;
  const auto node_bits = static_cast<unsigned>(std::bit_width(per_key) - 1);
  const prg::Corrections corrections = keys_.leaf_corrections(first, count, node_bits);
  if (output == Output::bit) {
    generator_.leaves(nodes, count * per_key, corrections, shares);
    return;
  }
  generator_.leaves(nodes, count * per_key, prg::kNoCorrections, shares);
  const CorrectWords correct = NESCIO_PICK(tier_, correct_words)(output);
  for (std::size_t i = 0; i < count; ++i) {
    correct(nodes + i * per_key, per_key, corrections.of(i * per_key, prg::kLeafBlocks),
            keys_.party(first + i), shares + i * per_key * prg::kLeafBlocks);
  }
}

void combine(Output output, const std::uint8_t* a, const std::uint8_t* b, std::size_t bytes,
             std::uint8_t* sums) {
  if (output == Output::bit) {
    for (std::size_t i = 0; i < bytes; ++i) sums[i] = a[i] ^ b[i];
    return;
  }
  with_word(output, [&]<class W>(W) {
    for (std::size_t i = 0; i < bytes; i += sizeof(W)) {
      W x, y;
      std::memcpy(&x, a + i, sizeof(W));
      std::memcpy(&y, b + i, sizeof(W));
      x = static_cast<W>(x + y);
      std::memcpy(sums + i, &x, sizeof(W));
    }
  });
}

}  // namespace nescio::dpf
