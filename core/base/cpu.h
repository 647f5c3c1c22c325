#pragma once

#include <span>
#include <string>
#include <string_view>

namespace nescio {

/// The instruction sets that kernels are written for, narrowest first.
///
/// Each tier is a file of its own, compiled with flags of its own, and returns the same bits as
/// `portable`. A room without a kernel for a tier uses the next narrower one it has.
enum class Tier {
  portable,  ///< C++ only: any x86-64, arm64
  avx2,      ///< AVX2, AES-NI, PCLMULQDQ
  avx512,    ///< AVX-512 F/BW/DQ/VL/VBMI, VAES, VPCLMULQDQ, GFNI, VPOPCNTDQ, VNNI
};

/// The tier's name, as NESCIO_CPU spells it.
const char* tier_name(Tier tier) noexcept;

/// The tiers that this processor and its operating system can run, narrowest first.
std::span<const Tier> supported_tiers();

/// The tier of that name. Throws Error(argument) if there is none, or if this machine lacks it.
Tier parse_tier(std::string_view name);

/// The widest supported tier, or the one that the environment variable NESCIO_CPU names; decided
/// once. Throws Error(argument) if NESCIO_CPU is not a tier of this machine.
Tier active_tier();

}  // namespace nescio
