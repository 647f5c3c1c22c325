#include "ggm/leaves.h"

namespace nescio::ggm {

Leaves::Leaves(unsigned depth, unsigned radix_bits, std::size_t most)
    : depth_(depth),
      radix_bits_(radix_bits),
      levels_(depth),
      nodes_(most),
      children_(most << radix_bits) {}

void Leaves::choose(std::span<const std::uint64_t> leaves) {
  const std::uint64_t digit_mask = (std::uint64_t{1} << radix_bits_) - 1;
  for (unsigned level = 0; level < depth_; ++level) {
    std::vector<std::size_t>& places = levels_[level];
    places.clear();
    const unsigned shift = radix_bits_ * (depth_ - 1 - level);
    std::size_t parents = 0;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const std::uint64_t node = leaves[i] >> shift;
      const std::uint64_t last = i == 0 ? 0 : leaves[i - 1] >> shift;
      if (i > 0 && node == last) continue;
      if (i == 0 || node >> radix_bits_ != last >> radix_bits_) ++parents;
      places.push_back(((parents - 1) << radix_bits_) | (node & digit_mask));
    }
  }
}

const Block* Leaves::nodes(const Forest& tree) {
  nodes_[0] = *tree.roots;
  std::size_t count = 1;
  for (unsigned level = 0; level < depth_; ++level) {
    const std::vector<std::size_t>& places = levels_[level];
    tree.generator->expand(nodes_.data(), count, tree.at(level, 0), children_.data());
    count = places.size();
    for (std::size_t i = 0; i < count; ++i) nodes_[i] = children_[places[i]];
  }
  return nodes_.data();
}

}  // namespace nescio::ggm
