#include "prg/chacha20.h"

#include <bit>

namespace nescio::prg::chacha20 {
namespace {

void quarter_round(State& x, std::size_t a, std::size_t b, std::size_t c, std::size_t d) {
  x[a] += x[b];
  x[d] = std::rotl(x[d] ^ x[a], 16);
  x[c] += x[d];
  x[b] = std::rotl(x[b] ^ x[c], 12);
  x[a] += x[b];
  x[d] = std::rotl(x[d] ^ x[a], 8);
  x[c] += x[d];
  x[b] = std::rotl(x[b] ^ x[c], 7);
}

State initial_state(Block key, std::uint32_t counter) {
  const auto k = std::bit_cast<std::array<std::uint32_t, 4>>(key);
  const auto& c = kConstants;
  return {c[0], c[1], c[2], c[3], k[0], k[1], k[2], k[3], k[0], k[1], k[2], k[3], counter, 0, 0, 0};
}

void blocks(const Block* nodes, std::size_t n, std::uint32_t counter, Corrections corrections,
            Block* out) {
  for (std::size_t i = 0; i < n; ++i) {
    const Block mask = block_mask(control_bit(nodes[i]));
    const auto stream =
        std::bit_cast<std::array<Block, 4>>(block_function(initial_state(nodes[i], counter)));
    for (std::size_t j = 0; j < 4; ++j) {
      out[4 * i + j] = stream[j] ^ (mask & corrections.of(i, 4)[j]);
    }
  }
}

}  // namespace

State block_function(const State& input) {
  State x = input;
  for (int round = 0; round < 20; round += 2) {
    for (std::size_t i = 0; i < 4; ++i) quarter_round(x, i, 4 + i, 8 + i, 12 + i);
    for (std::size_t i = 0; i < 4; ++i) {
      quarter_round(x, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
    }
  }
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += input[i];
  return x;
}

namespace portable {

void expand(const Block* parents, std::size_t n, Corrections corrections, Block* out) {
  blocks(parents, n, kChildrenCounter, corrections, out);
}

void leaves(const Block* nodes, std::size_t n, Corrections corrections, Block* out) {
  blocks(nodes, n, kLeafCounter, corrections, out);
}

}  // namespace portable
}  // namespace nescio::prg::chacha20
