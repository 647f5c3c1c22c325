#include "prg/prg.h"

#include <array>
#include <string>

#include "base/error.h"
#include "prg/cores.h"

namespace nescio::prg {
namespace {

/// Returns the error for an insecure generator that is requested without the prefix insecure_.
Error refusal(const std::string& name) {
  return Error(
      ErrorKind::argument,
      "generator '" + name +
          "' does not claim 128-bit security, so one key may reveal the index to its server: use " +
          "another generator, or name it 'insecure_" + name + "'");
}

}  // namespace

const Generator& generator(GeneratorId id, Tier tier) {
  for (const Generator& entry : NESCIO_PICK(tier, kGenerators)) {
    if (entry.id == id) return entry;
  }
  throw Error(ErrorKind::argument,
              "generator number " + std::to_string(static_cast<unsigned>(id)) + " does not exist");
}

GeneratorId parse_generator(std::string_view name) {
  std::string names;
  for (const Generator& entry : portable::kGenerators) {
    if (name == entry.name) return entry.id;
    if (entry.name == "insecure_" + std::string(name)) throw refusal(std::string(name));
    names += std::string(names.empty() ? "" : ", ") + entry.name;
  }
  throw Error(ErrorKind::argument,
              "generator: found '" + std::string(name) + "', expected one of " + names);
}

bool is_generator(std::uint8_t id) noexcept {
  for (const Generator& entry : portable::kGenerators) {
    if (static_cast<std::uint8_t>(entry.id) == id) return true;
  }
  return false;
}

}  // namespace nescio::prg
