#pragma once

// Products of weights of b bits and activations of k = 8, 16 or 32 bits, exact in 64-bit integers.
// Methods:
//
//   planes   AND of planes of both, and population counts (chapter 3 of the thesis)
//   fields   bit fields of the weights' bytes are masked in place and multiplied by bytes of the
//            activations
//   tables   four bits of a row look up their product with the activations in a table of sixteen
//            entries; a lookup gives one byte of an entry
//
// Each tier has its own layout of weights, which its methods share.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/tier.h"
#include "bitserial/planes.h"

namespace nescio::bitserial {

/// `fastest` selects the method that was measured to be the fastest: see product.cc.
enum class Method { fastest, planes, fields, tables };

/// Weights in the layout of a tier.
struct Weights {
  std::size_t rows;
  std::size_t columns;
  unsigned bits;
  Method method;
  const std::uint8_t* packed;
};

/// Maximum vectors that are multiplied together.
inline constexpr std::size_t kMaxVectors = 16;

/// Contiguous vectors of activations in the layout of a tier.
struct Activations {
  unsigned bits;
  std::size_t batch;
  const std::uint8_t* vectors;
  std::size_t vector_bytes;
  const std::int64_t* sums;  // the sum of the values of each vector
};

/// Tasks have a multiple of this many rows: layouts have blocks of up to this many rows.
inline constexpr std::size_t kTaskRows = 64;

/// The rows of a task of 128 KB of weights, of `packed_bytes` for all `rows`.
inline constexpr std::size_t rows_per_task(std::size_t packed_bytes, std::size_t rows) {
  return ((std::size_t{1} << 17) / (packed_bytes / rows + 1) / kTaskRows + 1) * kTaskRows;
}

struct Kernels {
  /// Bytes of packed weights; a product reads all of them.
  std::size_t (*packed_bytes)(const Planes& planes);
  void (*pack)(const Planes& planes, std::uint8_t* packed);

  /// Bytes of one packed vector: whole cache lines.
  std::size_t (*vector_bytes)(const Weights& weights, unsigned activation_bits);

  /// Packs one vector of weights.columns values; returns their sum.
  std::int64_t (*pack_vector)(const Weights& weights, const std::int32_t* x,
                              unsigned activation_bits, std::uint8_t* vector);

  /// Sets y[v * weights.rows + i] to the product of row i and vector v, for `rows` rows from
  /// `first_row` on, a multiple of kTaskRows. `rows` is a multiple of kTaskRows too, or reaches the
  /// last row.
  void (*multiply)(const Weights& weights, const Activations& x, std::size_t first_row,
                   std::size_t rows, std::int64_t* y);
};

const Kernels& kernels_of(Tier tier);

/// The names of a tier's methods.
std::span<const char* const> method_names(Tier tier);

/// The method with this name, or `fastest` if the name is empty. Throws Error(argument) if the
/// tier does not have the method.
Method parse_method(std::string_view name, Tier tier);

/// True if parts of `width` bits (fields.h) use tables.
bool uses_tables(const Weights& weights, unsigned width, unsigned activation_bits);

/// The names of the methods that a product uses, joined by "+".
std::string methods_used(const Weights& weights, Tier tier, unsigned activation_bits);

NESCIO_TIERS(extern const Kernels kKernels;)

namespace portable {
/// The product of `bytes` bytes of each plane, a multiple of four, of a row and of a vector, whose
/// planes are `stride` bytes apart. One-bit weights are twice their plane, without the offset.
std::int64_t multiply_planes(const std::uint8_t* row, const std::uint8_t* x, std::size_t stride,
                             std::size_t bytes, unsigned bits, unsigned activation_bits);
}  // namespace portable

}  // namespace nescio::bitserial
