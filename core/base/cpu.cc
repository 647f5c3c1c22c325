#include "base/cpu.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "base/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace nescio {
namespace {

constexpr std::array kTiers = {Tier::portable, Tier::avx2, Tier::avx512};

#if defined(__x86_64__)

struct Registers {
  std::uint32_t a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(std::uint32_t leaf) {
  Registers r;
  if (__get_cpuid_count(leaf, 0, &r.a, &r.b, &r.c, &r.d) == 0) return {};
  return r;
}

/// Returns the register states that the operating system saves on a context switch (Intel SDM, XCR0).
std::uint64_t saved_states() {
  constexpr std::uint32_t kOsxsave = 1u << 27;
  if ((cpuid(1).c & kOsxsave) == 0) return 0;
  std::uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (std::uint64_t{high} << 32) | low;
}

constexpr bool has_all(std::uint64_t value, std::uint64_t bits) { return (value & bits) == bits; }

constexpr std::uint64_t bits(std::initializer_list<int> positions) {
  std::uint64_t value = 0;
  for (int p : positions) value |= std::uint64_t{1} << p;
  return value;
}

bool has_avx2() {
  return has_all(saved_states(), bits({1, 2})) &&  // XMM, YMM
         has_all(cpuid(1).c,
                 bits({1, 9, 12, 19, 20, 23, 25, 28, 29})) &&  // PCLMULQDQ to AVX, FMA, F16C
         has_all(cpuid(7).b, bits({5, 8}));                    // AVX2, BMI2
}

bool has_avx512() {
  return has_avx2() && has_all(saved_states(), bits({5, 6, 7})) &&  // opmask, ZMM
         has_all(cpuid(7).b, bits({16, 17, 30, 31})) &&             // F, DQ, BW, VL
         has_all(cpuid(7).c,
                 bits({1, 8, 9, 10, 11, 14}));  // VBMI, GFNI, VAES, VPCLMULQDQ, VNNI, VPOPCNTDQ
}

#else

bool has_avx2() { return false; }
bool has_avx512() { return false; }

#endif

std::vector<Tier> detect() {
  std::vector<Tier> tiers = {Tier::portable};
  if (has_avx2()) tiers.push_back(Tier::avx2);
  if (has_avx512()) tiers.push_back(Tier::avx512);
  return tiers;
}

Tier choose() {
  const char* forced = std::getenv("NESCIO_CPU");
  if (forced == nullptr || *forced == '\0') return supported_tiers().back();
  try {
    return parse_tier(forced);
  } catch (const Error& e) {
    throw Error(e.kind(), std::string("NESCIO_CPU: ") + e.what());
  }
}

}  // namespace

const char* tier_name(Tier tier) noexcept {
  switch (tier) {
    case Tier::portable: return "portable";
    case Tier::avx2: return "avx2";
    case Tier::avx512: return "avx512";
  }
  return "?";
}

std::span<const Tier> supported_tiers() {
  static const std::vector<Tier> tiers = detect();
  return tiers;
}

Tier parse_tier(std::string_view name) {
  std::string supported;
  for (Tier tier : supported_tiers()) {
    if (name == tier_name(tier)) return tier;
    supported += std::string(supported.empty() ? "" : ", ") + tier_name(tier);
  }
  for (Tier tier : kTiers) {
    if (name != tier_name(tier)) continue;
    throw Error(ErrorKind::argument,
                "CPU tier '" + std::string(name) +
                    "' is not supported by this machine; supported: " + supported);
  }
  throw Error(ErrorKind::argument,
              "CPU tier '" + std::string(name) + "' does not exist; supported: " + supported);
}

Tier active_tier() {
  static const Tier tier = choose();
  return tier;
}

}  // namespace nescio
