#include "prg/prg.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string>

#include "base/error.h"
#include "bindings/bindings.h"
#include "prg/aes128.h"
#include "prg/cores.h"
#include "prg/stream/chacha20.h"

namespace nescio::bindings {
namespace {

/// Copies bytes to aligned blocks.
Buffer<Block> to_blocks(const Bytes& bytes) {
  Buffer<Block> blocks(bytes.size() / sizeof(Block));
  std::memcpy(blocks.data(), bytes.data(), blocks.size() * sizeof(Block));
  return blocks;
}

OutBytes to_bytes(const Buffer<Block>& blocks) {
  Buffer<std::uint8_t> bytes(blocks.size() * sizeof(Block));
  std::memcpy(bytes.data(), blocks.data(), bytes.size());
  return to_array(std::move(bytes), {blocks.size() * sizeof(Block)});
}

OutBytes aes128_encrypt(const Bytes& key, const Bytes& plaintext,
                        const std::optional<std::string>& tier) {
  if (key.size() != sizeof(Block))
    throw Error(ErrorKind::argument, "an AES-128 key must have 16 bytes");
  Block key_block;
  std::memcpy(&key_block, key.data(), sizeof(key_block));
  const Buffer<Block> in = to_blocks(plaintext);
  Buffer<Block> out(in.size());
  const auto keys = prg::aes128::variable_time_expand_key(key_block);
  prg::aes128::cipher_of(tier_of(tier)).encrypt(keys, in.data(), in.size(), out.data());
  return to_bytes(out);
}

OutBytes chacha20_block(const Bytes& state) {
  std::array<std::uint32_t, 16> words;
  if (state.size() != sizeof(words)) {
    throw Error(ErrorKind::argument, "a ChaCha20 state must have 64 bytes");
  }
  std::memcpy(words.data(), state.data(), sizeof(words));
  words = prg::chacha20_block(words);
  Buffer<std::uint8_t> bytes(sizeof(words));
  std::memcpy(bytes.data(), words.data(), sizeof(words));
  return to_array(std::move(bytes), {sizeof(words)});
}

OutBytes chacha20_stream(const Bytes& key, const Bytes& nonce, std::uint64_t first,
                         std::size_t count, const std::optional<std::string>& tier) {
  prg::StreamKey stream;
  if (key.size() != sizeof(stream.key) || nonce.size() != sizeof(stream.nonce)) {
    throw Error(ErrorKind::argument, "a ChaCha20 key must have 32 bytes, and a nonce 12 bytes");
  }
  if (count > std::uint64_t{1} << 32 || first > (std::uint64_t{1} << 32) - count) {
    throw Error(ErrorKind::argument, "a ChaCha20 stream has 2^32 blocks");
  }
  std::memcpy(stream.key.data(), key.data(), sizeof(stream.key));
  std::memcpy(stream.nonce.data(), nonce.data(), sizeof(stream.nonce));
  Buffer<std::uint8_t> bytes(checked_product(count, prg::kStreamBlockBytes));
  prg::chacha20_blocks(stream, first, count, bytes.data(), tier_of(tier));
  const std::size_t size = bytes.size();
  return to_array(std::move(bytes), {size});
}

OutBytes generate_blocks(const std::string& name, const Bytes& nodes, const Bytes& corrections,
                         bool leaves, unsigned group_bits, const std::optional<std::string>& tier) {
  const prg::Generator& generator = prg::generator(prg::parse_generator(name), tier_of(tier));
  const std::size_t width = leaves ? prg::kLeafBlocks : generator.arity();
  const Buffer<Block> in = to_blocks(nodes), correction = to_blocks(corrections);
  if (group_bits >= 64 || in.size() == 0 ||
      correction.size() != width * (((in.size() - 1) >> group_bits) + 1)) {
    throw Error(ErrorKind::argument,
                "each group of nodes requires " + std::to_string(width) + " blocks of corrections");
  }
  Buffer<Block> out(in.size() * width);
  const prg::Corrections corrections_of_all = {correction.data(), group_bits};
  (leaves ? generator.leaves : generator.expand)(in.data(), in.size(), corrections_of_all,
                                                 out.data());
  return to_bytes(out);
}

/// Measures the seconds of a call per node with all data in the first-level cache: the upper bound that
/// benchmarks compare an evaluation with.
double seconds_per_node(const std::string& name, bool leaves,
                        const std::optional<std::string>& tier) {
  constexpr std::size_t kNodes = 128, kRuns = 200, kTries = 20;
  const prg::Generator& generator = prg::generator(prg::parse_generator(name), tier_of(tier));
  Buffer<Block> nodes(kNodes), out(kNodes * prg::kMaxArity);
  for (std::size_t i = 0; i < kNodes; ++i) nodes[i] = {i, i};
  const auto call = leaves ? generator.leaves : generator.expand;
  double best = 1e9;
  for (std::size_t attempt = 0; attempt < kTries; ++attempt) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < kRuns; ++i) {
      call(nodes.data(), kNodes, prg::kNoCorrections, out.data());
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    best = std::min(best, taken.count() / (kNodes * kRuns));
  }
  return best;
}

}  // namespace

void bind_prg(nb::module_& m) {
  m.def("aes128_encrypt", &aes128_encrypt, nb::arg("key"), nb::arg("plaintext"),
        nb::arg("tier") = nb::none(), "Encrypt whole blocks with AES-128, for known-answer tests.");
  m.def("chacha20_block", &chacha20_block, nb::arg("state"),
        "Return the ChaCha20 block function of its 64-byte state, for known-answer tests.");
  m.def("chacha20_stream", &chacha20_stream, nb::arg("key"), nb::arg("nonce"), nb::arg("first"),
        nb::arg("count"), nb::arg("tier") = nb::none(),
        "Return blocks of the ChaCha20 keystream, for known-answer tests.");
  m.def("generate_blocks", &generate_blocks, nb::arg("generator"), nb::arg("nodes"),
        nb::arg("corrections"), nb::arg("leaves"),
        nb::arg("group_bits") = prg::Corrections::kOneTree, nb::arg("tier") = nb::none(),
        "Return the corrected children (or leaves) of nodes, for known-answer tests.");
  m.def("seconds_per_node", &seconds_per_node, nb::arg("generator"), nb::arg("leaves"),
        nb::arg("tier") = nb::none(),
        "Measure the seconds of one expansion (or leaf) in the cache.");
}

}  // namespace nescio::bindings
