#include "prg/prg.h"

#include <array>
#include <string>

#include "base/error.h"
#include "prg/aes128.h"
#include "prg/chacha20.h"

namespace nescio::prg {
namespace {

struct Entry {
  Tier tier;
  Generator generator;
};

// One row a generator and tier, widest tier first; a row is the whole of what a kernel must offer.
constexpr std::array kEntries = {
#if defined(NESCIO_X86_64)
    Entry{Tier::avx512,
          {GeneratorId::aes128, "aes128", 1, aes128::avx512::expand, aes128::avx512::leaves}},
    Entry{Tier::avx2,
          {GeneratorId::aes128, "aes128", 1, aes128::avx2::expand, aes128::avx2::leaves}},
    Entry{
        Tier::avx512,
        {GeneratorId::chacha20, "chacha20", 2, chacha20::avx512::expand, chacha20::avx512::leaves}},
    Entry{Tier::avx2,
          {GeneratorId::chacha20, "chacha20", 2, chacha20::avx2::expand, chacha20::avx2::leaves}},
#endif
    Entry{Tier::portable,
          {GeneratorId::aes128, "aes128", 1, aes128::portable::expand, aes128::portable::leaves}},
    Entry{Tier::portable,
          {GeneratorId::chacha20, "chacha20", 2, chacha20::portable::expand,
           chacha20::portable::leaves}},
};

}  // namespace

const Generator& generator(GeneratorId id, Tier tier) {
  for (const Entry& entry : kEntries) {
    if (entry.generator.id == id && entry.tier <= tier) return entry.generator;
  }
  throw Error(ErrorKind::argument,
              "there is no generator with the number " + std::to_string(static_cast<unsigned>(id)));
}

GeneratorId parse_generator(std::string_view name) {
  std::string names;
  for (const Entry& entry : kEntries) {
    if (entry.tier != Tier::portable) continue;
    if (name == entry.generator.name) return entry.generator.id;
    names += std::string(names.empty() ? "" : ", ") + entry.generator.name;
  }
  throw Error(ErrorKind::argument,
              "there is no generator '" + std::string(name) + "'; there are: " + names);
}

bool is_generator(std::uint8_t id) noexcept {
  for (const Entry& entry : kEntries) {
    if (static_cast<std::uint8_t>(entry.generator.id) == id) return true;
  }
  return false;
}

}  // namespace nescio::prg
