#pragma once

// Products of weights of b bits with activations of k = 8, 16 or 32 bits, exact in 64-bit integers.
// A kernel is a layout of the weights, a layout of the activations, and the product of the two; it
// has a name, and a tier may have several.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/cpu.h"
#include "bitserial/planes.h"

namespace nescio::bitserial {

/// Weights as a kernel laid them out.
struct Weights {
  std::size_t rows;
  std::size_t columns;
  unsigned bits;
  const std::uint8_t* packed;
  const std::int32_t* code_sums;  // a row each
};

/// Vectors of activations as a kernel laid them out: of each its lines, one after the other.
struct Activations {
  unsigned bits;
  std::size_t batch;
  const std::uint8_t* lines;
  std::size_t line_bytes;
  const std::int64_t* sums;  // of each vector's values
};

struct Kernel {
  const char* name;

  /// Bytes of the weights' layout, all of which a product reads.
  std::size_t (*packed_bytes)(const Planes& planes);

  void (*pack)(const Planes& planes, std::uint8_t* packed);

  /// Lines of a vector of so many bits, and bytes of each, whole cache lines.
  unsigned (*lines)(unsigned activation_bits);
  std::size_t (*line_bytes)(std::size_t columns);

  /// Lays one vector of n values out.
  void (*lay_out)(const std::int32_t* x, std::size_t n, unsigned activation_bits,
                  std::uint8_t* lines);

  /// y[v * weights.rows + i] = the product of row i with vector v, for `rows` rows from a multiple
  /// of kRowBlock on.
  void (*multiply)(const Weights& weights, const Activations& x, std::size_t first_row,
                   std::size_t rows, std::int64_t* y);
};

/// Rows that a kernel takes together.
inline constexpr std::size_t kRowBlock = 8;

/// The kernels of a tier, those that are chosen by themselves first.
std::span<const Kernel* const> kernels_of(Tier tier);

/// The kernel that serves weights of so many bits and that shape best, as measured; or, if it is
/// not empty, the one of that name. Throws Error(argument) if the tier has none of that name.
const Kernel& choose_kernel(const Planes& planes, Tier tier, std::string_view name);

namespace portable {
extern const Kernel kPlanes;
}

}  // namespace nescio::bitserial
