// Fuzz target: untrusted bytes as the messages of one-time tables, which have the length that both parties
// expect. All such bytes are accepted, nothing is read behind them, and what was read is the same when it
// is written again. The first two bytes choose the kind and the number of tables.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "lut/fields.h"

namespace {

using namespace nescio;
using Bytes = std::vector<std::uint8_t>;

/// Bytes of the expected length that repeat the input. The unused bits of the last byte are zero.
Bytes message_of(std::span<const std::uint8_t> data, const lut::Field& field, std::size_t count) {
  Bytes bytes(lut::message_bytes(field, count));
  for (std::size_t k = 0; k < bytes.size() && !data.empty(); ++k) bytes[k] = data[k % data.size()];
  const std::size_t used = field.bits() * count % 8;
  if (used != 0) bytes.back() &= static_cast<std::uint8_t>((1u << used) - 1);
  return bytes;
}

void check(bool holds) {
  if (!holds) std::abort();
}

/// Unpacks numbers and packs them again.
void check_packed(unsigned bits, std::size_t count, const Bytes& bytes) {
  std::vector<std::uint16_t> numbers(count);
  Bytes again(bytes.size());
  lut::unpack(bits, count, bytes.data(), numbers.data());
  for (std::uint16_t number : numbers) check(number >> bits == 0 || bits == 16);
  lut::pack(bits, count, numbers.data(), again.data());
  check(again == bytes);
}

/// Reads a message with pads of zeros, and writes it with shares, or pads, of what was read.
void check_read(const lut::Field& field, std::size_t count, const Bytes& bytes) {
  static ThreadPool pool(1);
  const std::size_t width = (field.bits() + 63) / 64 + (field.bits() == 0);
  const std::vector<std::uint64_t> zeros(count * width);
  std::vector<std::uint64_t> entries(count * width), products(count * width);
  std::vector<std::uint32_t> numbers(count);
  const Bytes ones(count, 1), none(count, 0);
  lut::read_message(field, count, {ones.data(), {zeros.data(), width}, bytes.data()},
                    {entries.data(), width}, numbers.data(), pool);
  for (std::size_t i = 0; field.product != 0 && i < count; ++i) {
    const std::uint32_t mask =
        (1u << field.product) - 1;  // numbers: 2^shift - 2^(shift + 1) product
    products[i * width] = (((1u << field.shift) - numbers[i]) >> field.shift >> 1) & mask;
  }
  Bytes again(bytes.size());
  lut::write_message(
      field, count,
      {{entries.data(), width}, none.data(), {products.data(), width}, {zeros.data(), width}},
      again.data(), nullptr, pool);
  check(again == bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const unsigned kind = data[0] % 3, choice = data[0] / 3;
  const std::size_t count = data[1];
  const std::span<const std::uint8_t> rest(data + 2, size - 2);
  const unsigned level = choice % lut::kMaxTableBits, number = choice % (lut::kRingBits - 1);
  const lut::Field fields[] = {{1 + choice % 16, 0, 0},
                               {(1u << level) - 1, 0, level},
                               {0, lut::kRingBits - 1 - number, number}};
  const Bytes bytes = message_of(rest, fields[kind], count);
  kind == 0 ? check_packed(fields[0].entries, count, bytes)
            : check_read(fields[kind], count, bytes);
  return 0;
}
