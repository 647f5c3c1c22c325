#include "ggm/walk.h"

#include <algorithm>
#include <utility>

namespace nescio::ggm {
namespace {

unsigned levels_in_chunk(const Tree& tree, unsigned chunk_bits) {
  return std::min(tree.depth, chunk_bits / tree.generator->radix_bits);
}

}  // namespace

Cursor::Cursor(const Tree& tree, unsigned level) : tree_(tree), level_(level), siblings_(level) {}

const Block& Cursor::seek(std::uint64_t index) {
  const Block* node = &tree_.root;
  const std::uint64_t digit_mask = tree_.generator->arity() - 1;
  for (unsigned k = 0; k < level_; ++k) {
    auto& children = siblings_[k];
    if (!started_ || prefix(index, k) != prefix(current_, k)) {
      tree_.generator->expand(node, 1, tree_.level_corrections(k), children.data());
    }
    node = &children[prefix(index, k + 1) & digit_mask];
  }
  started_ = true;
  current_ = index;
  return *node;
}

Walk::Workspace::Workspace(unsigned chunk_bits)
    : front(std::size_t{1} << chunk_bits), back(std::size_t{1} << chunk_bits) {}

Walk::Walk(const Tree& tree, unsigned chunk_bits)
    : tree_(tree),
      chunk_levels_(levels_in_chunk(tree, chunk_bits)),
      chunk_bits_(chunk_levels_ * tree.generator->radix_bits),
      cursor_(tree_, tree.depth - chunk_levels_) {}

std::span<const Block> Walk::nodes(std::uint64_t first, std::uint64_t last, Workspace& space) {
  const prg::Generator& generator = *tree_.generator;
  const std::uint64_t top = first >> chunk_bits_;
  first -= top << chunk_bits_;
  last -= top << chunk_bits_;
  Block* from = space.front.data();
  Block* to = space.back.data();
  *from = cursor_.seek(top);
  std::uint64_t low = 0, high = 1;  // the nodes of this level that are held, from `from` on
  for (unsigned k = 1; k <= chunk_levels_; ++k) {
    const unsigned shift = generator.radix_bits * (chunk_levels_ - k);
    generator.expand(from, high - low, tree_.level_corrections(tree_.depth - chunk_levels_ + k - 1),
                     to);
    const std::uint64_t leftmost = low << generator.radix_bits;
    low = first >> shift;
    high = ((last - 1) >> shift) + 1;
    // The buffer written last is read from its first wanted node on; the other is free again.
    Block* const freed = k % 2 == 1 ? space.front.data() : space.back.data();
    from = to + (low - leftmost);
    to = freed;
  }
  return {from, static_cast<std::size_t>(high - low)};
}

}  // namespace nescio::ggm
