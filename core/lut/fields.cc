#include "lut/fields.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace nescio::lut {
namespace {

/// Transfers of a task: fields of 64 transfers end at a byte.
constexpr std::size_t kTaskTransfers = 4096;
static_assert(kTaskTransfers % 64 == 0);

constexpr std::uint64_t low_mask(unsigned bits) {
  return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

/// Writes values of up to 64 bits one after the other.
class BitWriter {
 public:
  explicit BitWriter(std::uint8_t* out) : out_(out) {}

  void put(std::uint64_t value, unsigned bits) {
    word_ |= value << fill_;
    if (fill_ + bits < 64) {
      fill_ += bits;
      return;
    }
    store(8);
    word_ = fill_ == 0 ? 0 : value >> (64 - fill_);
    fill_ = fill_ + bits - 64;
  }

  void finish() {
    if (fill_ != 0) store((fill_ + 7) / 8);
  }

 private:
  void store(std::size_t bytes) {
    std::memcpy(out_, &word_, bytes);
    out_ += bytes;
  }

  std::uint8_t* out_;
  std::uint64_t word_ = 0;
  unsigned fill_ = 0;  // bits of word_ in use, below 64
};

/// Reads them back; never reads past `bytes`.
class BitReader {
 public:
  BitReader(const std::uint8_t* in, std::size_t bytes) : in_(in), left_(bytes) {}

  std::uint64_t get(unsigned bits) {
    std::uint64_t value = word_;
    if (bits > held_) {
      const std::uint64_t next = load();
      value |= held_ == 64 ? 0 : next << held_;
      const unsigned used = bits - held_;
      word_ = used == 64 ? 0 : next >> used;
      held_ = 64 - used;
    } else {
      word_ = bits == 64 ? 0 : word_ >> bits;
      held_ -= bits;
    }
    return value & low_mask(bits);
  }

 private:
  std::uint64_t load() {
    std::uint64_t next = 0;
    const std::size_t bytes = std::min<std::size_t>(8, left_);
    std::memcpy(&next, in_, bytes);
    in_ += bytes;
    left_ -= bytes;
    return next;
  }

  const std::uint8_t* in_;
  std::size_t left_;
  std::uint64_t word_ = 0;
  unsigned held_ = 0;  // bits of word_ that were not read
};

/// Returns `bits` bits, at most 32, of an array of words.
std::uint32_t bits_at(const std::uint64_t* words, unsigned first, unsigned bits) {
  if (bits == 0) return 0;
  const unsigned shift = first % 64;
  std::uint64_t value = words[first / 64] >> shift;
  if (shift + bits > 64) value |= words[first / 64 + 1] << (64 - shift);
  return static_cast<std::uint32_t>(value & low_mask(bits));
}

void check(const Field& field, std::size_t pad_words) {
  const unsigned most = (1u << (kMaxTableBits - 1)) - 1;
  if (field.entries > most || (field.entries & (field.entries + 1)) != 0 ||
      field.shift >= kRingBits || field.product >= kRingBits - field.shift) {
    throw Error(ErrorKind::argument,
                "a field of a transfer: found " + std::to_string(field.entries) + " entries, " +
                    std::to_string(field.product) + " bits of a product and " + "a shift of " +
                    std::to_string(field.shift) + ", expected those of a table");
  }
  if (pad_words * 64 < field.bits()) {
    throw Error(ErrorKind::argument, "pads: found " + std::to_string(64 * pad_words) +
                                         " bits, expected " + std::to_string(field.bits()));
  }
}

/// Calls work(first, end) for parts of `count` transfers.
template <class Work>
void in_parts(std::size_t count, ThreadPool& pool, const Work& work) {
  const std::size_t tasks = (count + kTaskTransfers - 1) / kTaskTransfers;
  pool.run(tasks, [&](std::size_t task, unsigned) {
    const std::size_t first = task * kTaskTransfers;
    work(first, std::min(count, first + kTaskTransfers));
  });
}

void check_packed(unsigned bits) {
  if (bits == 0 || bits > 16) {
    throw Error(ErrorKind::argument,
                "packed numbers: found " + std::to_string(bits) + " bits, expected 1 to 16");
  }
}

std::uint64_t parity(std::uint64_t word) {
  return static_cast<std::uint64_t>(__builtin_parityll(word));
}

}  // namespace

std::size_t message_bytes(const Field& field, std::size_t count) {
  return count / 8 * field.bits() + (count % 8 * field.bits() + 7) / 8;
}

void write_message(const Field& field, std::size_t count, const Sent& sent, std::uint8_t* message,
                   std::uint32_t* numbers, ThreadPool& pool) {
  check(field, std::min(sent.zero.width, sent.one.width));
  const unsigned whole = field.entries / 64, rest = field.entries % 64;
  in_parts(count, pool, [&](std::size_t first, std::size_t end) {
    BitWriter out(message + message_bytes(field, first));
    for (std::size_t i = first; i < end; ++i) {
      const std::uint64_t *zero = sent.zero[i], *one = sent.one[i], *share = sent.shares[i];
      for (unsigned w = 0; w < whole; ++w) out.put(zero[w] ^ one[w] ^ share[w], 64);
      if (rest != 0) {
        out.put((zero[whole] ^ one[whole] ^ share[whole]) & low_mask(rest), rest);
      }
      const std::uint32_t bit = sent.bits[i];
      const std::uint32_t own = bits_at(zero, field.entries, field.product);
      const std::uint32_t other = bits_at(one, field.entries, field.product);
      if (field.product != 0) out.put((own - other + bit) & low_mask(field.product), field.product);
      if (numbers != nullptr) numbers[i] += (bit << field.shift) + (own << field.shift << 1);
    }
    out.finish();
  });
}

void read_message(const Field& field, std::size_t count, const Received& received,
                  const Words<std::uint64_t>& entries, std::uint32_t* numbers, ThreadPool& pool) {
  check(field, received.pads.width);
  check({field.entries, 0, 0}, field.entries == 0 ? 1 : entries.width);
  const unsigned whole = field.entries / 64, rest = field.entries % 64;
  const std::size_t bytes = message_bytes(field, count);
  in_parts(count, pool, [&](std::size_t first, std::size_t end) {
    const std::size_t skipped = message_bytes(field, first);
    BitReader in(received.message + skipped, bytes - skipped);
    for (std::size_t i = first; i < end; ++i) {
      const std::uint64_t* pad = received.pads[i];
      const std::uint32_t choice = received.choices[i];
      const std::uint64_t chosen = 0 - std::uint64_t{choice};
      for (unsigned w = 0; w < whole; ++w) entries[i][w] = pad[w] ^ (chosen & in.get(64));
      if (rest != 0) {
        entries[i][whole] = (pad[whole] & low_mask(rest)) ^ (chosen & in.get(rest));
      }
      std::uint32_t product = bits_at(pad, field.entries, field.product);
      if (field.product != 0) {
        product += static_cast<std::uint32_t>(chosen & in.get(field.product));
        product &= static_cast<std::uint32_t>(low_mask(field.product));
      }
      if (numbers != nullptr) numbers[i] += (choice << field.shift) - (product << field.shift << 1);
    }
  });
}

void pack(unsigned bits, std::size_t count, const std::uint16_t* numbers, std::uint8_t* out) {
  check_packed(bits);
  BitWriter writer(out);
  for (std::size_t i = 0; i < count; ++i) writer.put(numbers[i] & low_mask(bits), bits);
  writer.finish();
}

void unpack(unsigned bits, std::size_t count, const std::uint8_t* packed, std::uint16_t* out) {
  check_packed(bits);
  BitReader reader(packed, message_bytes({bits, 0, 0}, count));
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::uint16_t>(reader.get(bits));
}

void grow(unsigned level, std::size_t count, const std::uint8_t* bits,
          const Words<const std::uint64_t>& zero, const Words<const std::uint64_t>& received,
          const Words<std::uint64_t>& shares, ThreadPool& pool) {
  const std::size_t size = std::size_t{1} << level, words = (size + 63) / 64;
  const std::size_t after = (2 * size + 63) / 64;
  if (level == 0 || level >= kMaxTableBits || zero.width < words || received.width < words ||
      shares.width < after) {
    throw Error(ErrorKind::argument, "a vector of 2^" + std::to_string(level) + " entries: found " +
                                         std::to_string(shares.width) +
                                         " words, expected at least " + std::to_string(after));
  }
  const std::uint64_t last_mask = low_mask(static_cast<unsigned>((size - 1) % 64));
  in_parts(count, pool, [&](std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) {
      const std::uint64_t chosen = 0 - std::uint64_t{bits[i]};
      std::uint64_t* share = shares[i];
      std::uint64_t part[1u << (kMaxTableBits - 7)], sum = 0;
      for (std::size_t w = 0; w < words; ++w) {
        part[w] = (share[w] & chosen) ^ zero[i][w] ^ received[i][w];
        if (w + 1 == words) part[w] &= last_mask;
        sum ^= part[w];
      }
      part[words - 1] |= (parity(sum) ^ bits[i]) << ((size - 1) % 64);
      for (std::size_t w = 0; w < words; ++w) share[w] ^= part[w];
      if (size < 64) {
        share[0] |= part[0] << size;
      } else {
        std::memcpy(share + words, part, 8 * words);
      }
    }
  });
}

}  // namespace nescio::lut
