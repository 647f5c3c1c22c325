// The body of records*.cc: each tier's file includes it once and compiles it with its own flags. All of
// it is private to the file that includes it.
//
// A tier hashes as many records at once as a register holds words, one per lane (base/lanes_impl.h). A
// message is a sequence of pieces of 16 bytes: the prefix is the first piece, so the record's bytes
// begin at a piece. Whole pieces of the records are loaded in place. The prefix, the last bytes of a
// record and the padding are staged as [piece][lane].

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/block.h"
#include "base/lanes_impl.h"
#include "hash/records.h"
#include "hash/sha256.h"

namespace nescio::hash {
namespace {

/// Hashes as many records of one length as W has lanes.
template <class W>
class Hasher {
 public:
  static constexpr std::size_t kCount = sizeof(W) / sizeof(Sha256::Word);

  Hasher(std::size_t bytes, std::uint64_t tag)
      : bytes_(bytes), whole_(bytes / kPiece), rest_(bytes % kPiece) {
    constexpr std::size_t kPadding = 9;  // a bit 1, at least, and the length in 8 bytes
    pieces_ = (kPiece + bytes + kPadding + 63) / 64 * 4;
    for (std::size_t l = 0; l < kCount; ++l) {
      prefix_[l].lo = tag;
      reinterpret_cast<std::uint8_t*>(&ends_[0][l])[rest_] = 0x80;
      ends_[pieces_ - whole_ - 2][l].hi = __builtin_bswap64(8 * (kPiece + bytes));
    }
  }

  /// Hashes 1 to kCount records. The other lanes repeat the last one.
  void hash(const std::uint8_t* records, std::size_t count, const Numbers& numbers,
            std::uint8_t* out) {
    for (std::size_t l = 0; l < kCount; ++l) {
      const std::size_t i = l < count ? l : count - 1;
      offsets_[l] = i * bytes_;
      prefix_[l].hi = numbers.of(i);
      if (rest_) std::memcpy(&ends_[0][l], records + offsets_[l] + whole_ * kPiece, rest_);
    }
    W state[8];
    Sha256::start(state);
    for (std::size_t piece = 0; piece < pieces_; piece += 4) {
      W w[16];
      NESCIO_UNROLL
      for (std::size_t p = 0; p < 4; ++p) load_piece(records, piece + p, w + 4 * p);
      NESCIO_UNROLL
      for (int i = 0; i < 16; ++i) w[i] = Sha256::swap_bytes(w[i]);
      Sha256::compress(w, state);
    }
    store(state, count, out);
  }

 private:
  static constexpr std::size_t kPiece = sizeof(Block);

  void load_piece(const std::uint8_t* records, std::size_t piece, W* words) const {
    if (piece == 0) {
      load_words<Sha256::Word>(prefix_, words);
    } else if (piece <= whole_) {
      gather_words<Sha256::Word>(records + (piece - 1) * kPiece, offsets_, words);
    } else {
      load_words<Sha256::Word>(ends_[piece - 1 - whole_], words);
    }
  }

  void store(W* state, std::size_t count, std::uint8_t* out) const {
    Block hashes[2][kCount];
    NESCIO_UNROLL
    for (int i = 0; i < 8; ++i) state[i] = Sha256::swap_bytes(state[i]);
    store_words<Sha256::Word>(state, hashes[0]);
    store_words<Sha256::Word>(state + 4, hashes[1]);
    for (std::size_t l = 0; l < count; ++l) {
      std::memcpy(out + l * kHashBytes, &hashes[0][l], kPiece);
      std::memcpy(out + l * kHashBytes + kPiece, &hashes[1][l], kPiece);
    }
  }

  std::size_t bytes_, whole_, rest_;  // of a record: all bytes, whole pieces, bytes after them
  std::size_t pieces_;                // of a message with its padding
  std::size_t offsets_[kCount];
  alignas(64) Block prefix_[kCount];
  alignas(64) Block ends_[5][kCount] = {};  // the last bytes and the padding
};

/// Hashes records first to end - 1.
template <class W>
void hash_range(const Records& records, std::size_t first, std::size_t end, std::uint64_t tag,
                const Numbers& numbers, std::uint8_t* out) {
  Hasher<W> hasher(records.bytes, tag);
  for (std::size_t i = first, count; i < end; i += count) {
    count = end - i < hasher.kCount ? end - i : hasher.kCount;
    hasher.hash(records.data + i * records.bytes, count, numbers.from(i), out + i * kHashBytes);
  }
}

/// Hashes all records. A last record alone is faster without vectors; two are not.
inline void hash_by_lanes(const Records& records, std::uint64_t tag, const Numbers& numbers,
                          std::uint8_t* out) {
  using Word = Sha256::Word;
  const std::size_t alone = kLanes<Word> > 1 && records.count % kLanes<Word> == 1 ? 1 : 0;
  const std::size_t together = records.count - alone;
  if (together) hash_range<Lanes<Word>::Words>(records, 0, together, tag, numbers, out);
  if (alone) hash_range<Word>(records, together, records.count, tag, numbers, out);
}

}  // namespace

/// Defines the function of the tier that is being compiled.
#define NESCIO_DEFINE_HASH_ALL                                                     \
  void hash_all(const Records& records, std::uint64_t tag, const Numbers& numbers, \
                std::uint8_t* out) {                                               \
    hash_by_lanes(records, tag, numbers, out);                                     \
  }

}  // namespace nescio::hash
