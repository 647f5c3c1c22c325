#pragma once

// Products of weights of b bits with activations of k = 8, 16 or 32 bits, exact in 64-bit integers.
// Methods:
//
//   planes   the chapter's: AND of planes of both, and population counts
//   fields   fields of the weights' bytes are masked where they stand and multiplied with bytes of
//            the activations
//   tables   four bits of a row look up their product among the sixteen that there can be; the
//            tables are made of the activations, and a look-up is a byte of an entry
//
// A tier lays weights out in its own way; its methods share the layout.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/tier.h"
#include "bitserial/planes.h"

namespace nescio::bitserial {

/// `measured` is whichever was measured to be fastest: see product.cc.
enum class Method { measured, planes, fields, tables };

/// Weights as a tier laid them out.
struct Weights {
  std::size_t rows;
  std::size_t columns;
  unsigned bits;
  Method method;
  const std::uint8_t* packed;
};

/// Vectors that are multiplied together, at most.
inline constexpr std::size_t kMostVectors = 16;

/// Vectors of activations as a tier laid them out, one after the other.
struct Activations {
  unsigned bits;
  std::size_t batch;
  const std::uint8_t* vectors;
  std::size_t vector_bytes;
  const std::int64_t* sums;  // of each vector's values
};

/// Rows that a tier may take together: tasks are whole blocks.
inline constexpr std::size_t kTaskRows = 64;

struct Kernels {
  /// Bytes of the weights' layout, all of which a product reads.
  std::size_t (*packed_bytes)(const Planes& planes);
  void (*pack)(const Planes& planes, std::uint8_t* packed);

  /// Bytes of one vector's layout, whole cache lines.
  std::size_t (*vector_bytes)(const Weights& weights, unsigned activation_bits);

  /// Lays out one vector, of as many values as the weights have columns; returns their sum.
  std::int64_t (*lay_out)(const Weights& weights, const std::int32_t* x, unsigned activation_bits,
                          std::uint8_t* vector);

  /// y[v * weights.rows + i] = the product of row i with vector v, for `rows` rows from a multiple
  /// of kTaskRows on; as many as kTaskRows, or to the last.
  void (*multiply)(const Weights& weights, const Activations& x, std::size_t first_row,
                   std::size_t rows, std::int64_t* y);
};

const Kernels& kernels_of(Tier tier);

/// The names of a tier's methods.
std::span<const char* const> method_names(Tier tier);

/// The method of that name, or `measured` if it is empty. Throws Error(argument) if the tier has
/// none of that name.
Method parse_method(std::string_view name, Tier tier);

/// Whether the tables are used for parts of `width` bits (fields.h).
bool uses_tables(const Weights& weights, unsigned width, unsigned activation_bits);

/// The names of the methods that a product uses.
std::string methods_used(const Weights& weights, Tier tier, unsigned activation_bits);

NESCIO_TIERS(extern const Kernels kKernels;)

}  // namespace nescio::bitserial
