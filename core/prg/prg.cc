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
#define ROW(tier, name, radix_bits)                                                              \
  Entry {                                                                                        \
    Tier::tier, { GeneratorId::name, #name, radix_bits, name::tier::expand, name::tier::leaves } \
  }

constexpr std::array kEntries = {
#if defined(NESCIO_X86_64)
    ROW(avx512, aes128, 1),
    ROW(avx512, chacha20, 2),
    ROW(avx512, chacha12, 2),
    ROW(avx512, chacha8, 2),
    ROW(avx512, salsa20, 2),
    ROW(avx512, sha256, 1),
    ROW(avx512, insecure_siphash, 1),
    ROW(avx512, insecure_highwayhash, 1),
    ROW(avx2, aes128, 1),
    ROW(avx2, chacha20, 2),
    ROW(avx2, chacha12, 2),
    ROW(avx2, chacha8, 2),
    ROW(avx2, salsa20, 2),
    ROW(avx2, sha256, 1),
    ROW(avx2, insecure_siphash, 1),
    ROW(avx2, insecure_highwayhash, 1),
#endif
    ROW(portable, aes128, 1),
    ROW(portable, chacha20, 2),
    ROW(portable, chacha12, 2),
    ROW(portable, chacha8, 2),
    ROW(portable, salsa20, 2),
    ROW(portable, sha256, 1),
    ROW(portable, insecure_siphash, 1),
    ROW(portable, insecure_highwayhash, 1),
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
