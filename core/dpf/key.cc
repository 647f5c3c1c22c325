#include "dpf/key.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/math.h"

namespace nescio::dpf {
namespace {

Error malformed(const std::string& message) {
  return Error(ErrorKind::malformed_key, "not a DPF key: " + message);
}

Error different_shapes(const Shape& found, const Shape& expected) {
  return Error("the keys of one call have one shape", found.describe(), expected.describe());
}

/// Copies the values of a part of keys, `width` for each key.
template <std::size_t width, class T>
void copy_part(const ColumnsOfKeys& part, const T* from, T* to) {
  const std::size_t row = part.from / part.run, key = part.from % part.run;
  for (std::size_t c = part.first; c < part.first + part.count; ++c) {
    const T* next = from + ((row * part.columns + c) * part.run + key) * width;
    std::size_t left = part.run - key;  // keys to the end of the run
    for (std::size_t i = 0; i < part.keys; ++i, next += width, to += width) {
      if (left == 0) {
        next += (part.columns - 1) * part.run * width;
        left = part.run;
      }
      --left;
      for (std::size_t k = 0; k < width; ++k) to[k] = next[k];
    }
  }
}

template <class T>
T read_as(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

}  // namespace

void Shape::check() const {
  if (domain == 0 || domain > kMaxDomain) {
    throw Error(ErrorKind::argument,
                "domain: found " + std::to_string(domain) + " points, expected 1 to 2^40");
  }
}

std::uint64_t Shape::leaves() const {
  const std::uint64_t elements = leaf_elements(output);
  return ceil_div(domain, elements);
}

unsigned Shape::radix_bits() const { return prg::radix_bits(generator); }

unsigned Shape::depth() const {
  const unsigned bits = static_cast<unsigned>(std::bit_width(leaves() - 1));
  return (bits + radix_bits() - 1) / radix_bits();
}

std::size_t Shape::key_bytes() const { return Layout(*this).end; }

std::string Shape::describe() const {
  return std::string(output_name(output)) + " keys over " + std::to_string(domain) +
         (domain == 1 ? " point from " : " points from ") +
         prg::generator(generator, Tier::portable).name;
}

Layout::Layout(const Shape& shape)
    : arity(1u << shape.radix_bits()),
      depth(shape.depth()),
      corrections(root + sizeof(Block)),
      control_bits(corrections + sizeof(Block) * (arity - 1) * depth),
      leaf_correction(control_bits + (depth + 7) / 8),
      end(leaf_correction + prg::kLeafBytes) {}

void write_header(const Shape& shape, unsigned party, std::uint8_t* out) {
  const std::uint8_t head[8] = {'N',
                                'K',
                                kVersion,
                                static_cast<std::uint8_t>(shape.generator),
                                static_cast<std::uint8_t>(shape.output),
                                static_cast<std::uint8_t>(party),
                                0,
                                0};
  std::memcpy(out, head, sizeof(head));
  std::memcpy(out + sizeof(head), &shape.domain, sizeof(shape.domain));
}

Header parse_header(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < kHeaderBytes) {
    throw malformed("found " + std::to_string(bytes.size()) +
                    " bytes, expected a header of at least " + std::to_string(kHeaderBytes));
  }
  if (bytes[0] != 'N' || bytes[1] != 'K') throw malformed("it does not begin with 'NK'");
  const auto number = [&](std::size_t i) { return std::to_string(unsigned{bytes[i]}); };
  if (bytes[2] != kVersion) {
    throw malformed("found version " + number(2) + ", expected version " +
                    std::to_string(unsigned{kVersion}));
  }
  if (!prg::is_generator(bytes[3]))
    throw malformed("generator number " + number(3) + " does not exist");
  if (!is_output(bytes[4])) throw malformed("output number " + number(4) + " does not exist");
  if (bytes[5] > 1) throw malformed("found party " + number(5) + ", expected 0 or 1");
  if (bytes[6] != 0 || bytes[7] != 0) throw malformed("its reserved bytes are not zero");
  const auto domain = read_as<std::uint64_t>(bytes.data() + 8);
  if (domain == 0 || domain > kMaxDomain) {
    throw malformed("found a domain of " + std::to_string(domain) + " points, expected 1 to 2^40");
  }
  const Shape shape{domain, static_cast<Output>(bytes[4]), static_cast<prg::GeneratorId>(bytes[3])};
  return {shape, bytes[5]};
}

Keys::Keys(const Shape& shape, std::size_t count)
    : shape_(shape),
      parties_(count),
      roots_(count),
      corrections_(shape.depth() * level_stride()),
      leaf_corrections_(count * prg::kLeafBlocks) {}

Keys::Keys(const std::uint8_t* bytes, std::size_t count, std::size_t key_bytes) {
  if (count == 0) return;
  const Shape shape = parse_header({bytes, key_bytes}).shape;
  if (key_bytes != shape.key_bytes()) {
    throw malformed("found " + std::to_string(key_bytes) + " bytes, " + shape.describe() +
                    " have " + std::to_string(shape.key_bytes()));
  }
  *this = Keys(shape, count);
  for (std::size_t i = 0; i < count; ++i) read(i, {bytes + i * key_bytes, key_bytes});
}

void Keys::read(std::size_t i, std::span<const std::uint8_t> bytes) {
  const Header header = parse_header(bytes);
  if (header.shape != shape_) throw different_shapes(header.shape, shape_);
  const Layout layout(shape_);
  parties_[i] = static_cast<std::uint8_t>(header.party);
  roots_[i] = read_as<Block>(bytes.data() + layout.root);
  if (control_bit(roots_[i]) != header.party) {
    throw malformed("the root's control bit contradicts its party");
  }
  const std::uint8_t* from = bytes.data() + layout.corrections;
  const std::uint8_t* bits = bytes.data() + layout.control_bits;
  for (unsigned k = 0; k < layout.depth; ++k) {
    Block* c = level(k) + i * layout.arity;
    Block last = {0, 0};
    for (unsigned j = 0; j + 1 < layout.arity; ++j, from += sizeof(Block)) {
      last ^= c[j] = read_as<Block>(from);
    }
    last.lo = (last.lo & ~std::uint64_t{1}) | ((bits[k / 8] >> (k % 8)) & 1u);
    c[layout.arity - 1] = last;
  }
  if (layout.depth % 8 != 0 && (bits[layout.depth / 8] >> (layout.depth % 8)) != 0) {
    throw malformed("the padding of its control bits is not zero");
  }
  std::memcpy(&leaf_corrections_[i * prg::kLeafBlocks], bytes.data() + layout.leaf_correction,
              prg::kLeafBytes);
}

Keys Keys::join(std::span<const Keys* const> parts) {
  std::size_t count = 0;
  const Keys* first = nullptr;
  for (const Keys* part : parts) {
    if (part->size() == 0) continue;
    if (first == nullptr) first = part;
    if (part->shape() != first->shape()) throw different_shapes(part->shape(), first->shape());
    count += part->size();
  }
  if (first == nullptr) return {};
  Keys all(first->shape(), count);
  std::size_t at = 0;
  for (const Keys* part : parts) {
    if (part->size() == 0) continue;
    std::copy(part->parties_.begin(), part->parties_.end(),
              all.parties_.begin() + static_cast<std::ptrdiff_t>(at));
    std::copy_n(part->roots_.data(), part->size(), all.roots_.data() + at);
    for (unsigned k = 0; k < all.shape().depth(); ++k) {
      std::copy_n(part->level(k), part->level_stride(),
                  all.level(k) + (at << all.shape_.radix_bits()));
    }
    std::copy_n(part->leaf_corrections_.data(), part->leaf_corrections_.size(),
                all.leaf_corrections_.data() + at * prg::kLeafBlocks);
    at += part->size();
  }
  return all;
}

void Keys::copy(const ColumnsOfKeys& part, const KeyArrays& to) const {
  copy_part<1>(part, parties_.data(), to.parties);
  copy_part<1>(part, roots_.data(), to.roots);
  for (unsigned k = 0; k < shape_.depth(); ++k) {
    Block* own = to.corrections + k * to.level_stride;
    if (shape_.radix_bits() == 1) {
      copy_part<2>(part, level(k), own);
    } else {
      copy_part<prg::kMaxArity>(part, level(k), own);
    }
  }
  copy_part<prg::kLeafBlocks>(part, leaf_corrections_.data(), to.leaf_corrections);
}

void Keys::take(const Keys& from, const ColumnsOfKeys& part) {
  const std::size_t count = part.count * part.keys;
  if (size() != count || shape_ != from.shape_) *this = Keys(from.shape_, count);
  from.copy(part, {parties_.data(), roots_.data(), corrections_.data(), level_stride(),
                   leaf_corrections_.data()});
}

ggm::Forest Keys::forest(std::size_t first, std::size_t count, Tier tier) const {
  return {&prg::generator(shape_.generator, tier),
          shape_.depth(),
          count,
          roots_.data() + first,
          corrections_.data() + (first << shape_.radix_bits()),
          level_stride()};
}

prg::Corrections Keys::leaf_corrections(std::size_t first, std::size_t count,
                                        unsigned node_bits) const {
  return {leaf_corrections_.data() + first * prg::kLeafBlocks,
          count == 1 ? prg::Corrections::kOneTree : node_bits};
}

}  // namespace nescio::dpf
