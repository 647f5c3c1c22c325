#include "prg/prg.h"

#include <array>
#include <string>

#include "base/error.h"
#include "prg/aes128.h"
#include "prg/cores.h"

namespace nescio::prg {
namespace {

struct Entry {
  Tier tier;
  Generator generator;
};

// One row a generator and tier, widest tier first; a row is the whole of what a kernel must offer.
#define ROW(tier, name)                                                            \
  Entry {                                                                          \
    Tier::tier, {                                                                  \
      GeneratorId::name, #name, radix_bits(GeneratorId::name), name::tier::expand, \
          name::tier::leaves                                                       \
    }                                                                              \
  }

constexpr std::array kEntries = {
#if defined(NESCIO_X86_64)
    ROW(avx512, aes128),
    ROW(avx512, chacha20),
    ROW(avx512, chacha12),
    ROW(avx512, chacha8),
    ROW(avx512, salsa20),
    ROW(avx512, sha256),
    ROW(avx512, insecure_siphash),
    ROW(avx512, insecure_highwayhash),
    ROW(avx2, aes128),
    ROW(avx2, chacha20),
    ROW(avx2, chacha12),
    ROW(avx2, chacha8),
    ROW(avx2, salsa20),
    ROW(avx2, sha256),
    ROW(avx2, insecure_siphash),
    ROW(avx2, insecure_highwayhash),
#endif
    ROW(portable, aes128),
    ROW(portable, chacha20),
    ROW(portable, chacha12),
    ROW(portable, chacha8),
    ROW(portable, salsa20),
    ROW(portable, sha256),
    ROW(portable, insecure_siphash),
    ROW(portable, insecure_highwayhash),
};

#undef ROW

/// Why a generator goes by no other name than its insecure_ one.
Error refusal(const std::string& name) {
  return Error(ErrorKind::argument,
               "nobody claims 128-bit security for '" + name +
                   "' as a generator, so one key may tell its server what is asked: use another, " +
                   "or call it 'insecure_" + name + "'");
}

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
    if (entry.generator.name == "insecure_" + std::string(name)) throw refusal(std::string(name));
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
