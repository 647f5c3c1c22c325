#include "lut/lookup.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/error.h"

namespace nescio::lut {
namespace {

constexpr std::size_t kTaskLookups = 4096;

template <class T>
void checked(const Table<T>& table, std::size_t count, const Words<const std::uint64_t>& shares,
             const std::uint16_t* opened, T* out, ThreadPool& pool,
             void (*kernel)(const Table<T>&, std::size_t, const Words<const std::uint64_t>&,
                            const std::uint16_t*, T*)) {
  const std::size_t words = std::max<std::size_t>(1, (std::size_t{1} << table.bits) / 64);
  if (table.bits == 0 || table.bits > kMaxTableBits || shares.width < words) {
    throw Error(ErrorKind::argument,
                "a table of 2^" + std::to_string(table.bits) + " entries: found shares of " +
                    std::to_string(shares.width) + " words, expected at least " +
                    std::to_string(words) + " and at most 2^12 entries");
  }
  pool.run((count + kTaskLookups - 1) / kTaskLookups, [&](std::size_t task, unsigned) {
    const std::size_t first = task * kTaskLookups, size = std::min(kTaskLookups, count - first);
    kernel(table, size, {shares[first], shares.width}, opened + first, out + first);
  });
}

/// Eight entries of one byte, or four of two, are a word whose entries the bits of a share select.
template <class T>
struct Spread;

template <>
struct Spread<std::uint8_t> {
  static constexpr unsigned kEntries = 8;
  static std::uint64_t mask(std::uint64_t bits) {
    // Bit i of the low byte, in byte i: 0x80 if it is set.
    const std::uint64_t high =
        ((bits & 0x7f) * 0x0002040810204081ull & 0x0101010101010101ull) | (bits >> 7 & 1) << 56;
    return high * 0xff;
  }
};

template <>
struct Spread<std::uint16_t> {
  static constexpr unsigned kEntries = 4;
  static std::uint64_t mask(std::uint64_t bits) {
    return ((bits & 0xf) * 0x0000200040008001ull & 0x0001000100010001ull) * 0xffff;
  }
};

template <class T>
T folded(std::uint64_t word) {
  for (unsigned shift = 32; shift >= 8 * sizeof(T); shift /= 2) word ^= word >> shift;
  return static_cast<T>(word);
}

template <class T>
void inner_products(const Table<T>& table, std::size_t count,
                    const Words<const std::uint64_t>& shares, const std::uint16_t* opened, T* out) {
  const std::size_t size = std::size_t{1} << table.bits;
  for (std::size_t i = 0; i < count; ++i) {
    const T* entries = table.twice + ((0 - std::size_t{opened[i]}) & (size - 1));
    std::uint64_t sum = 0;
    for (std::size_t place = 0; place < size; place += Spread<T>::kEntries) {
      std::uint64_t word = 0;
      const std::size_t left = std::min<std::size_t>(Spread<T>::kEntries, size - place);
      std::memcpy(&word, entries + place, left * sizeof(T));
      sum ^= word & Spread<T>::mask(shares[i][place / 64] >> (place % 64));
    }
    out[i] = folded<T>(sum);
  }
}

}  // namespace

namespace portable {
const Kernels kKernels{inner_products<std::uint8_t>, inner_products<std::uint16_t>};
}  // namespace portable

void look_up(const Table<std::uint8_t>& table, std::size_t count,
             const Words<const std::uint64_t>& shares, const std::uint16_t* opened,
             std::uint8_t* out, ThreadPool& pool, Tier tier) {
  checked(table, count, shares, opened, out, pool, NESCIO_PICK(tier, kKernels).bytes);
}

void look_up(const Table<std::uint16_t>& table, std::size_t count,
             const Words<const std::uint64_t>& shares, const std::uint16_t* opened,
             std::uint16_t* out, ThreadPool& pool, Tier tier) {
  checked(table, count, shares, opened, out, pool, NESCIO_PICK(tier, kKernels).halves);
}

void add_dabits(unsigned number, std::size_t count, const std::uint16_t* opened,
                const std::uint32_t* dabits, std::uint32_t* totals) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t minus = 0u - (static_cast<std::uint32_t>(opened[i]) >> number & 1u);
    totals[i] += (dabits[i] ^ minus) - minus;
  }
}

}  // namespace nescio::lut
