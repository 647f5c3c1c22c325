#include "probes/pir.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "base/buffer.h"
#include "pir/product/bit_product.h"
#include "pir/product/word_product.h"

namespace nescio::pir {
namespace {

constexpr std::size_t kKeys = 128;
constexpr std::size_t kAhead = 8192;  // prefetch distance in bytes

[[gnu::always_inline]] inline std::uint64_t xor_words(const std::uint8_t* data, std::size_t bytes) {
  typedef std::uint64_t Words __attribute__((vector_size(32)));
  constexpr std::size_t kStep = 4 * sizeof(Words);
  Words a{}, b{}, c{}, d{};
  const auto add = [data](Words& sum, std::size_t at) {
    Words words;
    std::memcpy(&words, data + at, sizeof(words));
    sum ^= words;
  };
  std::size_t at = 0;
  for (; at + kStep <= bytes; at += kStep) {
    __builtin_prefetch(data + at + kAhead);
    __builtin_prefetch(data + at + kAhead + 64);
    add(a, at);
    add(b, at + 32);
    add(c, at + 64);
    add(d, at + 96);
  }
  const Words sum = a ^ b ^ c ^ d;
  std::uint64_t all = sum[0] ^ sum[1] ^ sum[2] ^ sum[3];
  for (; at < bytes; ++at) all ^= data[at];
  return all;
}

#if defined(NESCIO_X86_64)
/// The same with wider loads, which read faster from a cache.
__attribute__((target("avx2"))) std::uint64_t xor_wide_words(const std::uint8_t* data,
                                                             std::size_t bytes) {
  return xor_words(data, bytes);
}
#else
constexpr auto& xor_wide_words = xor_words;
#endif

/// Returns the shortest time of many calls, to exclude the load of other processes.
template <class Work>
double best_seconds(Work work) {
  constexpr int kTries = 20, kRuns = 50;
  double best = 1e9;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kRuns; ++i) work();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    best = std::min(best, taken.count() / kRuns);
  }
  return best;
}

/// Returns a buffer with arbitrary content.
Buffer<std::uint8_t> filled(std::size_t bytes) {
  Buffer<std::uint8_t> buffer(bytes);
  for (std::size_t i = 0; i < bytes; ++i) buffer[i] = static_cast<std::uint8_t>(i * 151);
  return buffer;
}

double seconds_per_bit_byte(Tier tier) {
  const BitProduct& product = bit_product(tier);
  constexpr std::size_t kBlocks = 2;  // with one, the kernels have other loops
  const Buffer<std::uint8_t> blocks = filled(kBlocks * kBlockBytes),
                             shares = filled(kKeys * kLines);
  Buffer<std::uint8_t> scratch(product.scratch_bytes(kKeys));
  Buffer<std::uint8_t> sums(product.sum_bytes(kKeys, kBlocks));
  std::memset(sums.data(), 0, sums.size());
  product.lay_out(shares.data(), kLines, kKeys, scratch.data());
  const Tile tile = {blocks.data(), kBlocks, kLines};
  const double taken =
      best_seconds([&] { product.add_tile(tile, scratch.data(), kKeys, sums.data()); });
  return taken / (kKeys * kBlocks * kBlockBytes);
}

double seconds_per_word_byte(dpf::Output output, Tier tier) {
  constexpr std::size_t kRows = 64, kRowBytes = 128;
  const AddRows add_rows = word_product(output, tier);
  const std::size_t stride = kRows * dpf::element_bits(output) / 8;
  const Buffer<std::uint8_t> rows = filled(kRows * kRowBytes), shares = filled(kKeys * stride);
  Buffer<std::uint8_t> sums = filled(kKeys * kRowBytes);
  const double taken = best_seconds([&] {
    add_rows(rows.data(), kRows, kRowBytes, shares.data(), stride, kKeys, sums.data(), kRowBytes);
  });
  return taken / (kKeys * kRows * kRowBytes);
}

}  // namespace

std::uint64_t read_all(const Table& table, ThreadPool& pool) {
  const std::size_t bytes = table.extent.bytes(), parts = pool.threads();
  std::vector<std::uint64_t> sums(parts);
  const auto read = active_tier() >= Tier::avx2 ? xor_wide_words : xor_words;
  pool.run(parts, [&](std::size_t i, unsigned) {
    const std::size_t begin = bytes * i / parts;
    sums[i] = read(table.data + begin, bytes * (i + 1) / parts - begin);
  });
  return xor_words(reinterpret_cast<const std::uint8_t*>(sums.data()), parts * sizeof(sums[0]));
}

double seconds_per_byte(dpf::Output output, Tier tier) {
  return output == dpf::Output::bit ? seconds_per_bit_byte(tier)
                                    : seconds_per_word_byte(output, tier);
}

}  // namespace nescio::pir
