#pragma once

#include <span>
#include <string>
#include <string_view>

namespace nescio {

/// The instruction sets that kernels are written for, narrowest first.
///
/// Each tier of a kernel is a file of its own with its own compiler flags, and returns the same bits as
/// `portable`.
enum class Tier {
  portable,  ///< C++ only: any x86-64, arm64
  avx2,      ///< AVX2, AES-NI, PCLMULQDQ
  avx512,    ///< AVX-512 F/BW/DQ/VL/VBMI, VAES, VPCLMULQDQ, GFNI, VPOPCNTDQ, VNNI
};

/// Returns the tier's name, as in NESCIO_CPU.
const char* tier_name(Tier tier) noexcept;

/// Returns the tiers that this CPU and its operating system support, narrowest first.
std::span<const Tier> supported_tiers();

/// Returns the tier with that name. Throws Error(argument) if it does not exist or this machine does
/// not support it.
Tier parse_tier(std::string_view name);

/// Returns the widest supported tier, or the one in the environment variable NESCIO_CPU. The choice is
/// made once. Throws Error(argument) if this machine does not support NESCIO_CPU.
Tier active_tier();

}  // namespace nescio
