#include "dpf/key.h"

#include <bit>
#include <cstring>

#include "base/error.h"

namespace nescio::dpf {
namespace {

struct OutputEntry {
  const char* name;
  unsigned bits;
};

constexpr std::array<OutputEntry, 5> kOutputs = {
    {{"bit", 1}, {"u8", 8}, {"u32", 32}, {"u64", 64}, {"u128", 128}}};

const OutputEntry& entry(Output output) { return kOutputs[static_cast<std::size_t>(output)]; }

Error malformed(const std::string& message) {
  return Error(ErrorKind::malformed_key, "not a DPF key: " + message);
}

template <class T>
T read(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

}  // namespace

const char* output_name(Output output) noexcept { return entry(output).name; }

unsigned element_bits(Output output) noexcept { return entry(output).bits; }

std::uint64_t leaf_elements(Output output) noexcept {
  return 8 * prg::kLeafBytes / element_bits(output);
}

unsigned leaf_element_bits(Output output) noexcept {
  return static_cast<unsigned>(std::countr_zero(leaf_elements(output)));
}

Output parse_output(std::string_view name) {
  std::string names;
  for (std::size_t i = 0; i < kOutputs.size(); ++i) {
    if (name == kOutputs[i].name) return static_cast<Output>(i);
    names += std::string(i == 0 ? "" : ", ") + kOutputs[i].name;
  }
  throw Error(ErrorKind::argument,
              "there is no output '" + std::string(name) + "'; there are: " + names);
}

void Shape::check() const {
  if (domain == 0 || domain > kMostDomain) {
    throw Error(ErrorKind::argument,
                "domain: " + std::to_string(domain) + " was given, 1 to 2^40 points are possible");
  }
}

std::uint64_t Shape::leaves() const {
  const std::uint64_t elements = leaf_elements(output);
  return (domain + elements - 1) / elements;
}

unsigned Shape::radix_bits() const { return prg::generator(generator, Tier::portable).radix_bits; }

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

ggm::Tree Key::tree(Tier tier) const {
  return {&prg::generator(shape.generator, tier), shape.depth(), root, corrections.data()};
}

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
    throw malformed("found " + std::to_string(bytes.size()) + " bytes, its header alone has " +
                    std::to_string(kHeaderBytes));
  }
  if (bytes[0] != 'N' || bytes[1] != 'K') throw malformed("it does not begin with 'NK'");
  const auto number = [&](std::size_t i) { return std::to_string(unsigned{bytes[i]}); };
  if (bytes[2] != kVersion) {
    throw malformed("found version " + number(2) + ", this release reads version " +
                    std::to_string(unsigned{kVersion}));
  }
  if (!prg::is_generator(bytes[3])) throw malformed("there is no generator number " + number(3));
  if (bytes[4] >= kOutputs.size()) throw malformed("there is no output number " + number(4));
  if (bytes[5] > 1) throw malformed("found party " + number(5) + ", expected 0 or 1");
  if (bytes[6] != 0 || bytes[7] != 0) throw malformed("its reserved bytes are not zero");
  const auto domain = read<std::uint64_t>(bytes.data() + 8);
  if (domain == 0 || domain > kMostDomain) {
    throw malformed("found a domain of " + std::to_string(domain) + " points, expected 1 to 2^40");
  }
  const Shape shape{domain, static_cast<Output>(bytes[4]), static_cast<prg::GeneratorId>(bytes[3])};
  return {shape, bytes[5]};
}

Key parse_key(std::span<const std::uint8_t> bytes) {
  const Header header = parse_header(bytes);
  const Layout layout(header.shape);
  if (bytes.size() != layout.end) {
    throw malformed("found " + std::to_string(bytes.size()) + " bytes, " + header.shape.describe() +
                    " have " + std::to_string(layout.end));
  }
  Key key{header.shape, header.party, read<Block>(bytes.data() + layout.root), {}, {}};
  if (control_bit(key.root) != key.party) {
    throw malformed("the root's control bit contradicts its party");
  }
  key.corrections.resize(std::size_t{layout.arity} * layout.depth);
  const std::uint8_t* from = bytes.data() + layout.corrections;
  const std::uint8_t* bits = bytes.data() + layout.control_bits;
  for (unsigned level = 0; level < layout.depth; ++level) {
    Block* c = &key.corrections[std::size_t{level} * layout.arity];
    Block last = {0, 0};
    for (unsigned j = 0; j + 1 < layout.arity; ++j, from += sizeof(Block)) {
      last ^= c[j] = read<Block>(from);
    }
    last.lo = (last.lo & ~std::uint64_t{1}) | ((bits[level / 8] >> (level % 8)) & 1u);
    c[layout.arity - 1] = last;
  }
  if (layout.depth % 8 != 0 && (bits[layout.depth / 8] >> (layout.depth % 8)) != 0) {
    throw malformed("the padding of its control bits is not zero");
  }
  std::memcpy(key.leaf_correction.data(), bytes.data() + layout.leaf_correction, prg::kLeafBytes);
  return key;
}

}  // namespace nescio::dpf
