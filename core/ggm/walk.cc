#include "ggm/walk.h"

#include <algorithm>

namespace nescio::ggm {

Walk::Walk(const Forest& forest, unsigned chunk_bits)
    : forest_(forest),
      radix_bits_(forest.generator->radix_bits),
      chunk_levels_(std::min(forest.depth, chunk_bits / radix_bits_)),
      chunk_bits_(chunk_levels_ * radix_bits_),
      path_levels_(forest.depth - chunk_levels_),
      path_((path_levels_ + 1) * forest.trees),
      siblings_((path_levels_ * forest.trees) << radix_bits_) {
  for (Buffer<Block>& level : levels_) level = Buffer<Block>(forest.trees << chunk_bits_);
  restart();
}

void Walk::restart() {
  std::copy_n(forest_.roots, forest_.trees, path_.data());
  started_ = false;
}

const Block* Walk::seek(std::uint64_t index) {
  const std::size_t trees = forest_.trees;
  const std::uint64_t digit_mask = (1u << radix_bits_) - 1;
  Block* node = path_.data();
  Block* children = siblings_.data();
  for (unsigned k = 0; k < path_levels_; ++k, node += trees, children += trees << radix_bits_) {
    const bool known = started_ && prefix(index, k) == prefix(current_, k);
    if (known && prefix(index, k + 1) == prefix(current_, k + 1)) continue;
    if (!known) forest_.generator->expand(node, trees, forest_.at(k, 0), children);
    const std::uint64_t digit = prefix(index, k + 1) & digit_mask;
    for (std::size_t i = 0; i < trees; ++i) {
      node[trees + i] = children[(i << radix_bits_) | digit];
    }
  }
  started_ = true;
  current_ = index;
  return node;
}

Nodes Walk::nodes(std::uint64_t first, std::uint64_t last) {
  const std::size_t trees = forest_.trees;
  const Block* from = seek(first >> chunk_bits_);
  const std::uint64_t begin = (first >> chunk_bits_) << chunk_bits_;
  std::uint64_t low = 0, high = 1;  // the nodes of this level that `from` points to
  for (unsigned k = 1; k <= chunk_levels_; ++k) {
    Block* to = levels_[k % 2].data();
    forest_.generator->expand(from, trees * (high - low),
                              forest_.at(path_levels_ + k - 1, radix_bits_ * (k - 1)), to);
    from = to;
    low <<= radix_bits_;
    high <<= radix_bits_;
    if (trees > 1) continue;
    // A single tree continues with the wanted nodes only.
    const unsigned shift = radix_bits_ * (chunk_levels_ - k);
    const std::uint64_t wanted = (first - begin) >> shift;
    from += wanted - low;
    low = wanted;
    high = ((last - 1 - begin) >> shift) + 1;
  }
  return {from, begin + low, static_cast<std::size_t>(high - low)};
}

}  // namespace nescio::ggm
