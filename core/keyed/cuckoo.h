#pragma once

// The places of a keyed table's keys: cuckoo hashing with three hashes into three subtables of equal size,
// one key a row. Below a load of 0.917 all keys of a large table have places with a probability close
// to 1 (Fountoulakis and Panagiotou 2012).
//
// Nothing is random but the words of the keys: a new key takes the shortest path of moves, found breadth
// first in a fixed order. So two servers that insert and delete the same keys in the same order have the
// same table. tests/spec/keyed.py is the specification.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "keyed/key_hash.h"

namespace nescio::keyed {

/// A slot is a row of the physical table: subtable j begins with slot j * rows.
using Slot = std::int64_t;

/// Changes of the last operation, apart from the rows of the keys that were inserted.
struct Moves {
  std::vector<Slot> from, to;  ///< the key at from[i] is at to[i] now
  std::vector<Slot> emptied;   ///< slots that have no key any more
};

class Cuckoo {
 public:
  static constexpr std::uint64_t kMaxRows = std::uint64_t{1} << 32;

  /// Throws Error(argument) unless a subtable has 1 to kMaxRows rows.
  explicit Cuckoo(std::uint64_t rows);

  std::uint64_t rows() const { return rows_; }
  std::uint64_t size() const { return size_; }
  std::size_t bytes() const;

  /// Writes the slot of each key, or -1.
  void find(std::span<const KeyWords> keys, Slot* out) const;

  /// Inserts keys one after the other. Inserts none, and returns false, if one is in the table already,
  /// or has no path to an empty slot.
  bool insert(std::span<const KeyWords> keys);

  /// Deletes keys. Throws Error(argument), and deletes none, if one is not in the table or occurs twice.
  void erase(std::span<const KeyWords> keys);

  /// Returns the changes of the last insertion or deletion.
  Moves moves() const;

  /// Undoes the last insertion or deletion; a second call has no effect.
  void undo();

  /// Writes the slots and the words of all keys, by slot; both have room for size().
  void entries(Slot* slots, KeyWords* keys) const;

  /// Replaces all keys by what `entries` wrote. Throws Error(argument), and has no keys then, for a key at
  /// a slot that is none of its three, an empty key, or slots that do not increase.
  void restore(std::span<const Slot> slots, std::span<const KeyWords> keys);

 private:
  /// A slot on its way: the number of the step before it, or -1.
  struct Step {
    Slot slot;
    std::int64_t before;
  };
  struct Written {
    Slot slot;
    KeyWords before;
  };

  Slot slot_of(const KeyWords& key, unsigned subtable) const;
  Slot find(const KeyWords& key) const;
  bool place(const KeyWords& key);
  bool reach(Slot slot, std::int64_t before);
  void shift(const KeyWords& key);
  void write(Slot slot, const KeyWords& key);
  void begin();
  std::vector<Written> first_writes() const;

  std::uint64_t rows_;
  std::uint64_t size_ = 0;
  std::vector<KeyWords> slots_;      ///< a fingerprint of zero: empty
  std::vector<std::uint32_t> seen_;  ///< the number of the last search that reached a slot
  std::uint32_t search_ = 0;
  std::vector<Step> steps_;
  std::vector<Written> journal_;  ///< of the last operation, unless it began with no keys
  bool from_empty_ = false;       ///< the last operation began with no keys
};

}  // namespace nescio::keyed
