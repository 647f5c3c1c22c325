// Fuzz target: untrusted bytes as each message of a linear layer. The first byte chooses the message and
// the length that both parties expect. Messages are accepted, or rejected as malformed; a public key that
// is accepted is the same when it is written again.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "rlwe/layer.h"
#include "rlwe/messages.h"

namespace {

using namespace nescio;

/// Bytes of the expected length that repeat the input, so that short inputs reach the parsers.
std::vector<std::uint8_t> extend(std::span<const std::uint8_t> data, std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  for (std::size_t k = 0; k < size && !data.empty(); ++k) bytes[k] = data[k % data.size()];
  return bytes;
}

/// Parses rows and writes them again.
void check_rows(const std::vector<std::uint8_t>& bytes) {
  std::vector<std::uint32_t> row(rlwe::kDegree);
  std::vector<std::uint8_t> again(rlwe::kRowBytes);
  for (unsigned i = 0; i < 2; ++i) {
    const std::uint8_t* own = bytes.data() + rlwe::kSeedBytes + i * rlwe::kRowBytes;
    rlwe::read_row(own, i, row.data());
    rlwe::write_row(row.data(), again.data());
    if (std::memcmp(own, again.data(), again.size()) != 0) std::abort();
  }
}

void receive(std::uint8_t choice, std::span<const std::uint8_t> data) {
  static ThreadPool pool(1);
  static const rlwe::ClientKey key({}, {}, active_tier());
  static const std::uint32_t counts[] = {2}, positions[] = {0, 4095};
  static const rlwe::Results results(counts, positions, 21);
  if (choice % 4 == 0) {
    rlwe::PublicKey(data, pool, active_tier());
  } else if (choice % 4 == 1) {
    rlwe::decrypt(key, results, data, choice / 4, pool, active_tier());
  } else if (choice % 4 == 2) {
    rlwe::decrypt(key, results, extend(data, results.answer_bytes(1)), 1, pool, active_tier());
  } else {
    const std::vector<std::uint8_t> bytes = extend(data, rlwe::ciphertexts_bytes(1));
    check_rows(bytes);
    rlwe::PublicKey(bytes, pool, active_tier());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  try {
    receive(data[0], {data + 1, size - 1});
  } catch (const nescio::Error& error) {
    if (error.kind() != nescio::ErrorKind::malformed_message) {
      std::fprintf(stderr, "unexpected: %s\n", error.what());
      std::abort();
    }
  }
  return 0;
}
