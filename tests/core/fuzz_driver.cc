// Runs a libFuzzer target if the compiler has no libFuzzer. Half of the inputs are valid keys with a few
// bytes changed, removed or added; the others are noise behind a valid header. It does not use coverage,
// and has the same options: -runs=N, -max_total_time=SECONDS, -max_len=BYTES, -seed=N.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "dpf/generate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using namespace nescio;
using Bytes = std::vector<std::uint8_t>;

class Inputs {
 public:
  Inputs(std::uint64_t seed, std::size_t max_length) : random_(seed), max_length_(max_length) {}

  Bytes next() {
    Bytes input = random_() % 2 == 0 ? valid_key() : noise();
    for (std::uint64_t changes = random_() % 4; changes > 0; --changes) change(input);
    if (input.size() > max_length_) input.resize(max_length_);
    return input;
  }

 private:
  dpf::Shape shape() {
    const std::uint64_t domain = 1 + (random_() >> (24 + random_() % 40)) % dpf::kMaxDomain;
    return {domain, static_cast<dpf::Output>(random_() % 5),
            static_cast<prg::GeneratorId>(1 + random_() % 8)};
  }

  Bytes valid_key() {
    const dpf::Shape s = shape();
    const std::uint64_t alpha = random_() % s.domain;
    const Block payload = {random_(), random_()};
    Bytes keys[2] = {Bytes(s.key_bytes()), Bytes(s.key_bytes())};
    dpf::generate(s, {&alpha, 1}, {&payload, 1}, keys[0].data(), keys[1].data(), active_tier());
    return keys[random_() % 2];
  }

  Bytes noise() {
    Bytes bytes(random_() % max_length_);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random_());
    if (bytes.size() >= dpf::kHeaderBytes) {
      dpf::write_header(shape(), static_cast<unsigned>(random_() % 2), bytes.data());
    }
    return bytes;
  }

  void change(Bytes& bytes) {
    const std::size_t at = bytes.empty() ? 0 : random_() % bytes.size();
    switch (random_() % 4) {
      case 0:
        if (!bytes.empty()) bytes[at % 32 % bytes.size()] = static_cast<std::uint8_t>(random_());
        break;
      case 1:
        if (!bytes.empty()) bytes[at] ^= static_cast<std::uint8_t>(1u << (random_() % 8));
        break;
      case 2: bytes.resize(at); break;
      default: bytes.resize(bytes.size() + random_() % 64);
    }
  }

  std::mt19937_64 random_;
  std::size_t max_length_;
};

std::uint64_t option(int argc, char** argv, const std::string& name, std::uint64_t otherwise) {
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], name.c_str(), name.size()) == 0) {
      return std::stoull(argv[i] + name.size());
    }
  }
  return otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t runs = option(argc, argv, "-runs=", UINT64_MAX);
  const std::chrono::seconds limit(option(argc, argv, "-max_total_time=", UINT32_MAX));
  Inputs inputs(option(argc, argv, "-seed=", std::random_device{}()),
                option(argc, argv, "-max_len=", 4096));
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t run = 0;
  for (; run < runs && std::chrono::steady_clock::now() - begin < limit; ++run) {
    const Bytes input = inputs.next();
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("%llu inputs, no failures\n", static_cast<unsigned long long>(run));
}
