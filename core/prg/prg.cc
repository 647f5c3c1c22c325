#include "prg/prg.h"

#include <array>
#include <string>

#include "base/error.h"
#include "prg/cores.h"

namespace nescio::prg {
namespace {

/// Why a generator goes by no other name than its insecure_ one.
Error refusal(const std::string& name) {
  return Error(ErrorKind::argument,
               "nobody claims 128-bit security for '" + name +
                   "' as a generator, so one key may tell its server what is asked: use another, " +
                   "or call it 'insecure_" + name + "'");
}

}  // namespace

const Generator& generator(GeneratorId id, Tier tier) {
  for (const Generator& entry : NESCIO_PICK(tier, kGenerators)) {
    if (entry.id == id) return entry;
  }
  throw Error(ErrorKind::argument,
              "there is no generator with the number " + std::to_string(static_cast<unsigned>(id)));
}

GeneratorId parse_generator(std::string_view name) {
  std::string names;
  for (const Generator& entry : portable::kGenerators) {
    if (name == entry.name) return entry.id;
    if (entry.name == "insecure_" + std::string(name)) throw refusal(std::string(name));
    names += std::string(names.empty() ? "" : ", ") + entry.name;
  }
  throw Error(ErrorKind::argument,
              "there is no generator '" + std::string(name) + "'; there are: " + names);
}

bool is_generator(std::uint8_t id) noexcept {
  for (const Generator& entry : portable::kGenerators) {
    if (static_cast<std::uint8_t>(entry.id) == id) return true;
  }
  return false;
}

}  // namespace nescio::prg
