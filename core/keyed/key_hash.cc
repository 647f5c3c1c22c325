#include "keyed/key_hash.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/math.h"
#include "hash/sha256.h"

namespace nescio::keyed {
namespace {

using hash::Sha256;

constexpr std::size_t kBlockBytes = 64;
constexpr std::size_t kTaskKeys = 1024;

/// One SHA-256, over bytes that arrive in parts.
class Hasher {
 public:
  Hasher() { Sha256::start<std::uint32_t>(state_); }

  void add(const std::uint8_t* data, std::size_t bytes) {
    total_ += bytes;
    while (bytes != 0) {
      const std::size_t part = std::min(bytes, kBlockBytes - held_);
      std::memcpy(block_ + held_, data, part);
      held_ += part;
      data += part;
      bytes -= part;
      if (held_ == kBlockBytes) compress();
    }
  }

  /// Pads the message and returns its digest as words.
  KeyWords finish() {
    const std::uint64_t bits = total_ * 8;
    const std::uint8_t one = 0x80, zeros[kBlockBytes] = {};
    add(&one, 1);
    add(zeros, (2 * kBlockBytes - 8 - held_) % kBlockBytes);
    std::uint8_t length[8];
    for (int i = 0; i < 8; ++i) length[i] = static_cast<std::uint8_t>(bits >> (56 - 8 * i));
    add(length, sizeof(length));
    std::uint32_t digest[8];
    for (int i = 0; i < 8; ++i) digest[i] = Sha256::swap_bytes(state_[i]);
    return std::bit_cast<KeyWords>(digest);
  }

 private:
  void compress() {
    std::uint32_t words[16];
    std::memcpy(words, block_, sizeof(words));
    for (std::uint32_t& word : words) word = Sha256::swap_bytes(word);
    Sha256::compress(words, state_);
    held_ = 0;
  }

  std::uint32_t state_[8];
  std::uint8_t block_[kBlockBytes];
  std::size_t held_ = 0;
  std::uint64_t total_ = 0;
};

void check(std::span<const std::uint8_t> seed, const PackedKeys& keys) {
  if (seed.size() != kSeedBytes) {
    throw Error(ErrorKind::argument, "seed of keys: found " + std::to_string(seed.size()) +
                                         " bytes, expected " + std::to_string(kSeedBytes));
  }
  const std::uint64_t end = keys.ends.empty() ? 0 : keys.ends.back();
  if (end != keys.data.size() || !std::is_sorted(keys.ends.begin(), keys.ends.end())) {
    throw Error(ErrorKind::argument, "ends of keys: found a last end of " + std::to_string(end) +
                                         " or ends that decrease, expected ends that rise to " +
                                         std::to_string(keys.data.size()) +
                                         ", the bytes of all keys");
  }
}

}  // namespace

void hash_keys(std::span<const std::uint8_t> seed, const PackedKeys& keys, KeyWords* out,
               ThreadPool& pool) {
  check(seed, keys);
  Hasher begun;
  begun.add(seed.data(), seed.size());
  pool.run(ceil_div(keys.ends.size(), kTaskKeys), [&](std::size_t task, unsigned) {
    const std::size_t end = std::min((task + 1) * kTaskKeys, keys.ends.size());
    for (std::size_t i = task * kTaskKeys; i < end; ++i) {
      const std::uint64_t first = i == 0 ? 0 : keys.ends[i - 1];
      Hasher own = begun;
      own.add(keys.data.data() + first, keys.ends[i] - first);
      out[i] = own.finish();
      // No branch: a client's keys are secret.
      const std::uint64_t last = out[i].fingerprint;
      out[i].fingerprint = last | (((last | (0 - last)) >> 63) ^ 1);
    }
  });
}

}  // namespace nescio::keyed
