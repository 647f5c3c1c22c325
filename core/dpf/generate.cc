#include "dpf/generate.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "base/buffer.h"
#include "base/error.h"
#include "base/random.h"
#include "base/secret.h"
#include "dpf/shares.h"

namespace nescio::dpf {
namespace {

/// Keys generated together, to fill the generator's wide kernels.
constexpr std::size_t kGroup = 64;

/// Key pairs that are being generated level by level. Party b of key i is at 2i + b.
class Group {
 public:
  Group(const Shape& shape, std::span<const std::uint64_t> alphas, Tier tier, std::uint8_t* keys0,
        std::uint8_t* keys1)
      : shape_(shape),
        layout_(shape),
        generator_(prg::generator(shape.generator, tier)),
        alphas_(alphas),
        keys_{keys0, keys1},
        nodes_(2 * alphas.size()),
        children_(2 * alphas.size() * std::max<std::size_t>(layout_.arity, prg::kLeafBlocks)) {}

  Block* roots() { return nodes_.data(); }

  void begin() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const unsigned party = i % 2;
      nodes_[i].lo = (nodes_[i].lo & ~std::uint64_t{1}) | party;
      std::uint8_t* key = keys_[party] + i / 2 * layout_.end;
      std::memset(key, 0, layout_.end);
      write_header(shape_, party, key);
      std::memcpy(key + layout_.root, &nodes_[i], sizeof(Block));
    }
  }

  void grow(unsigned level) {
    generator_.expand(nodes_.data(), nodes_.size(), prg::kNoCorrections, children_.data());
    for (std::size_t i = 0; i < alphas_.size(); ++i) correct_level(i, level);
  }

  void finish(std::span<const Block> payloads) {
    generator_.leaves(nodes_.data(), nodes_.size(), prg::kNoCorrections, children_.data());
    for (std::size_t i = 0; i < alphas_.size(); ++i) correct_leaf(i, payloads[i]);
  }

 private:
  /// c_j = G_j(s0) ^ G_j(s1) ^ [j = a] T, where a is the child on the path and T is the XOR of all
  /// differences G_j(s0) ^ G_j(s1), with its lowest bit set. After the correction the parties agree on
  /// every child but a, where they differ by T: unknown to each, with different control bits.
  void correct_level(std::size_t i, unsigned level) {
    const unsigned arity = layout_.arity;
    const Block* own[2] = {&children_[2 * i * arity], &children_[(2 * i + 1) * arity]};
    const std::uint64_t leaf = alphas_[i] >> leaf_element_bits(shape_.output);
    const std::uint64_t digit =
        (leaf >> (generator_.radix_bits * (layout_.depth - 1 - level))) & (arity - 1);
    std::array<Block, prg::kMaxArity> correction;
    Block total = {0, 0};
    for (unsigned j = 0; j < arity; ++j) total ^= correction[j] = own[0][j] ^ own[1][j];
    total.lo |= 1;
    for (unsigned j = 0; j < arity; ++j) {
      correction[j] ^= total & block_mask(equal_bit(j, digit));
    }
    for (unsigned party = 0; party < 2; ++party) {
      Block& node = nodes_[2 * i + party];
      const Block mask = block_mask(control_bit(node));
      Block next = {0, 0};
      for (unsigned j = 0; j < arity; ++j) {
        next ^= (own[party][j] ^ (mask & correction[j])) & block_mask(equal_bit(j, digit));
      }
      node = next;
    }
    write_level(i, level, correction);
  }

  void write_level(std::size_t i, unsigned level,
                   const std::array<Block, prg::kMaxArity>& correction) {
    const unsigned sent = layout_.arity - 1;
    const auto last_bit = static_cast<std::uint8_t>(control_bit(correction[sent]) << (level % 8));
    for (std::uint8_t* keys : keys_) {
      std::uint8_t* key = keys + i * layout_.end;
      std::memcpy(key + layout_.corrections + sizeof(Block) * sent * level, correction.data(),
                  sizeof(Block) * sent);
      key[layout_.control_bits + level / 8] |= last_bit;
    }
  }

  void correct_leaf(std::size_t i, Block payload) {
    Leaf own[2];
    std::memcpy(own, &children_[2 * prg::kLeafBlocks * i], sizeof(own));
    const std::uint64_t position = alphas_[i] & (leaf_elements(shape_.output) - 1);
    Leaf unit = unit_leaf(shape_.output, position, payload);
    const Leaf correction =
        dpf::leaf_correction(shape_.output, unit, own[0], own[1], control_bit(nodes_[2 * i + 1]));
    for (std::uint8_t* keys : keys_) {
      std::memcpy(keys + i * layout_.end + layout_.leaf_correction, correction.data(),
                  sizeof(correction));
    }
    wipe(own, sizeof(own));
    wipe(&unit, sizeof(unit));
  }

  Shape shape_;
  Layout layout_;
  const prg::Generator& generator_;
  std::span<const std::uint64_t> alphas_;
  std::array<std::uint8_t*, 2> keys_;
  SecretBuffer<Block> nodes_;
  SecretBuffer<Block> children_;
};

/// Reveals nothing about the points but that one of them is outside the domain.
void check(const Shape& shape, std::span<const std::uint64_t> alphas) {
  shape.check();
  for (std::uint64_t alpha : alphas) {
    if (declassify(alpha < shape.domain)) continue;
    throw Error(ErrorKind::index, "point " + std::to_string(alpha) + " is outside the domain of " +
                                      std::to_string(shape.domain) + " points");
  }
}

template <class FillRoots>
void generate_groups(const Shape& shape, std::span<const std::uint64_t> alphas,
                     std::span<const Block> payloads, std::uint8_t* keys0, std::uint8_t* keys1,
                     Tier tier, FillRoots fill_roots) {
  check(shape, alphas);
  const std::size_t key_bytes = shape.key_bytes();
  for (std::size_t first = 0; first < alphas.size(); first += kGroup) {
    const std::size_t count = std::min(kGroup, alphas.size() - first);
    Group group(shape, alphas.subspan(first, count), tier, keys0 + first * key_bytes,
                keys1 + first * key_bytes);
    fill_roots(group.roots(), first, count);
    group.begin();
    for (unsigned level = 0; level < shape.depth(); ++level) group.grow(level);
    group.finish(payloads.subspan(first, count));
  }
}

}  // namespace

void generate(const Shape& shape, std::span<const std::uint64_t> alphas,
              std::span<const Block> payloads, std::uint8_t* keys0, std::uint8_t* keys1,
              Tier tier) {
  generate_groups(shape, alphas, payloads, keys0, keys1, tier,
                  [](Block* roots, std::size_t, std::size_t count) {
                    random_bytes(roots, 2 * count * sizeof(Block));
                  });
}

void insecure_generate(const Shape& shape, std::span<const std::uint64_t> alphas,
                       std::span<const Block> payloads, std::span<const Block> roots,
                       std::uint8_t* keys0, std::uint8_t* keys1, Tier tier) {
  generate_groups(shape, alphas, payloads, keys0, keys1, tier,
                  [&](Block* to, std::size_t first, std::size_t count) {
                    std::copy_n(roots.begin() + static_cast<std::ptrdiff_t>(2 * first), 2 * count,
                                to);
                  });
}

}  // namespace nescio::dpf
