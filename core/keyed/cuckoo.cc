#include "keyed/cuckoo.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "base/error.h"

namespace nescio::keyed {
namespace {

constexpr KeyWords kEmpty = {};

bool is_empty(const KeyWords& key) { return key.fingerprint == 0; }

}  // namespace

Cuckoo::Cuckoo(std::uint64_t rows) : rows_(rows) {
  if (rows < 1 || rows > kMaxRows) {
    throw Error(ErrorKind::argument, "rows of a subtable: found " + std::to_string(rows) +
                                         ", expected 1 to " + std::to_string(kMaxRows));
  }
  try {
    slots_.resize(kSubtables * rows);
    seen_.resize(kSubtables * rows);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::resource, "out of memory: requested " + std::to_string(bytes()) +
                                         " bytes for the places of keys");
  }
}

std::size_t Cuckoo::bytes() const {
  return kSubtables * rows_ * (sizeof(KeyWords) + sizeof(std::uint32_t));
}

Slot Cuckoo::slot_of(const KeyWords& key, unsigned subtable) const {
  // The upper half of word * rows, in halves of the word; rows <= 2^32, so that nothing overflows.
  const std::uint64_t word = key.at[subtable], low = word & 0xffffffff;
  const std::uint64_t place = ((word >> 32) * rows_ + (low * rows_ >> 32)) >> 32;
  return static_cast<Slot>(subtable * rows_ + place);
}

Slot Cuckoo::find(const KeyWords& key) const {
  for (unsigned j = 0; j < kSubtables; ++j) {
    const Slot slot = slot_of(key, j);
    if (slots_[slot] == key) return slot;
  }
  return -1;
}

void Cuckoo::find(std::span<const KeyWords> keys, Slot* out) const {
  std::transform(keys.begin(), keys.end(), out, [this](const KeyWords& key) { return find(key); });
}

bool Cuckoo::insert(std::span<const KeyWords> keys) {
  begin();
  const auto add = [this](const KeyWords& key) { return find(key) < 0 && place(key); };
  if (std::all_of(keys.begin(), keys.end(), add)) return true;
  undo();
  return false;
}

void Cuckoo::erase(std::span<const KeyWords> keys) {
  begin();
  for (const KeyWords& key : keys) {
    const Slot slot = find(key);
    if (slot < 0) {
      undo();
      throw Error(ErrorKind::argument, "a key to delete is not in the table, or is named twice");
    }
    write(slot, kEmpty);
  }
}

/// Searches the shortest path to an empty slot, and moves the keys on it.
bool Cuckoo::place(const KeyWords& key) {
  if (++search_ == 0) {  // the numbers are used up
    std::fill(seen_.begin(), seen_.end(), 0);
    search_ = 1;
  }
  steps_.clear();
  for (unsigned j = 0; j < kSubtables; ++j) {
    if (reach(slot_of(key, j), -1)) return shift(key), true;
  }
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const KeyWords held = slots_[steps_[i].slot];
    for (unsigned j = 0; j < kSubtables; ++j) {
      if (reach(slot_of(held, j), static_cast<std::int64_t>(i))) return shift(key), true;
    }
  }
  return false;
}

/// Adds a slot to the search unless it is there. Returns true if it is empty.
bool Cuckoo::reach(Slot slot, std::int64_t before) {
  if (seen_[slot] == search_) return false;
  seen_[slot] = search_;
  steps_.push_back({slot, before});
  return is_empty(slots_[slot]);
}

/// Moves the keys on the path to the last step, which is an empty slot, and writes the new one.
void Cuckoo::shift(const KeyWords& key) {
  Step step = steps_.back();
  while (step.before >= 0) {
    const Step before = steps_[step.before];
    write(step.slot, slots_[before.slot]);
    step = before;
  }
  write(step.slot, key);
}

/// Begins an operation: the one before it cannot be undone any more.
void Cuckoo::begin() {
  journal_ = {};  // that of a large operation is not kept
  from_empty_ = size_ == 0;
}

void Cuckoo::write(Slot slot, const KeyWords& key) {
  if (!from_empty_) journal_.push_back({slot, slots_[slot]});
  size_ += !is_empty(key);
  size_ -= !is_empty(slots_[slot]);
  slots_[slot] = key;
}

void Cuckoo::undo() {
  if (from_empty_) {
    std::fill(slots_.begin(), slots_.end(), kEmpty);
    size_ = 0;
    return;
  }
  for (auto written = journal_.rbegin(); written != journal_.rend(); ++written) {
    size_ += !is_empty(written->before);
    size_ -= !is_empty(slots_[written->slot]);
    slots_[written->slot] = written->before;
  }
  journal_.clear();
}

/// The first write of each slot since the operation began, by slot.
std::vector<Cuckoo::Written> Cuckoo::first_writes() const {
  std::vector<Written> writes = journal_;
  const auto by_slot = [](const Written& a, const Written& b) { return a.slot < b.slot; };
  std::stable_sort(writes.begin(), writes.end(), by_slot);
  const auto same = [](const Written& a, const Written& b) { return a.slot == b.slot; };
  writes.erase(std::unique(writes.begin(), writes.end(), same), writes.end());
  return writes;
}

Moves Cuckoo::moves() const {
  Moves moves;
  for (const Written& written : first_writes()) {
    if (is_empty(written.before)) continue;
    if (is_empty(slots_[written.slot])) moves.emptied.push_back(written.slot);
    const Slot now = find(written.before);
    if (now >= 0 && now != written.slot) {
      moves.from.push_back(written.slot);
      moves.to.push_back(now);
    }
  }
  return moves;
}

void Cuckoo::entries(Slot* slots, KeyWords* keys) const {
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    if (is_empty(slots_[slot])) continue;
    *slots++ = static_cast<Slot>(slot);
    *keys++ = slots_[slot];
  }
}

void Cuckoo::restore(std::span<const Slot> slots, std::span<const KeyWords> keys) {
  std::fill(slots_.begin(), slots_.end(), kEmpty);
  size_ = 0;
  journal_ = {};
  from_empty_ = false;
  Slot last = -1;
  const auto fits = [&](Slot slot, const KeyWords& key) {
    const bool own = slot == slot_of(key, 0) || slot == slot_of(key, 1) || slot == slot_of(key, 2);
    return own && slot > std::exchange(last, slot) && !is_empty(key);
  };
  const bool valid = slots.size() == keys.size() &&
                     std::equal(slots.begin(), slots.end(), keys.begin(), keys.end(), fits);
  if (!valid) {
    throw Error(
        ErrorKind::argument,
        "places of keys: found keys at slots that are not theirs, expected what entries returned");
  }
  for (std::size_t i = 0; i < keys.size(); ++i) slots_[slots[i]] = keys[i];
  size_ = keys.size();
}

}  // namespace nescio::keyed
