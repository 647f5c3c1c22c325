#include "bitserial/product.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>

#include "base/error.h"
#include "bitserial/fields.h"

namespace nescio::bitserial {
namespace {

static_assert(kTaskRows % kBlockRows == 0);

constexpr std::size_t kNever = ~std::size_t{0};

/// The number of rows from which tables, which take time to build, are faster than multiplications,
/// for parts of `width` bits. Measured: docs/quant-kernels.md has the figures and the command.
struct TableThreshold {
  unsigned width;
  std::size_t rows_8, rows_16, rows_32;  // for activations of 8, 16 and 32 bits
};
constexpr TableThreshold kTableThresholds[] = {
    {1, 128, 64, 64},
    {2, kNever, 256, 256},
    {4, kNever, kNever, kNever},
    {8, kNever, kNever, kNever},
};

}  // namespace

bool uses_tables(const Weights& weights, unsigned width, unsigned activation_bits) {
  if (weights.method == Method::fields) return false;
  if (weights.method == Method::tables) return width <= 2;
  const auto* threshold = std::find_if(std::begin(kTableThresholds), std::end(kTableThresholds),
                                       [=](const TableThreshold& c) { return c.width == width; });
  const std::size_t rows = activation_bits == 8    ? threshold->rows_8
                           : activation_bits == 16 ? threshold->rows_16
                                                   : threshold->rows_32;
  return weights.rows >= rows;
}

std::string methods_used(const Weights& weights, Tier tier, unsigned activation_bits) {
  if (tier != Tier::avx512) return method_names(tier).front();
  bool tables = false, fields = false;
  for (const Part& part : parts_of(weights.bits, 8)) {
    (uses_tables(weights, part.width, activation_bits) ? tables : fields) = true;
  }
  return tables && fields ? "fields+tables" : tables ? "tables" : "fields";
}

const Kernels& kernels_of(Tier tier) { return NESCIO_PICK(tier, kKernels); }

std::span<const char* const> method_names(Tier tier) {
  static constexpr const char* kPortable[] = {"planes"};
  static constexpr const char* kAvx2[] = {"fields"};
  static constexpr const char* kAvx512[] = {"fields", "tables"};
  using Names = std::span<const char* const>;
  return pick<Names>(tier, kPortable, kAvx2, kAvx512);
}

Method parse_method(std::string_view name, Tier tier) {
  if (name.empty()) return Method::fastest;
  std::string names;
  for (const std::string_view known : method_names(tier)) {
    if (name == known) {
      return known == "planes"   ? Method::planes
             : known == "fields" ? Method::fields
                                 : Method::tables;
    }
    names += (names.empty() ? "" : ", ") + std::string(known);
  }
  throw Error(ErrorKind::argument, "kernel: found '" + std::string(name) + "', expected one of " +
                                       names + " for the CPU tier " + tier_name(tier));
}

// Algorithm 2 of the thesis: AND of planes of weights and planes of activations, and a population
// count. The planes of a row are contiguous, and so are those of a vector.
namespace portable {
namespace {

std::size_t packed_bytes(const Planes& planes) {
  return checked_product(checked_product(planes.rows, planes.bits), planes.row_words() * 8);
}

void pack(const Planes& planes, std::uint8_t* packed) {
  const std::size_t bytes = planes.row_words() * 8;
  for (std::size_t i = 0; i < planes.rows; ++i) {
    for (unsigned plane = 0; plane < planes.bits; ++plane, packed += bytes) {
      std::memcpy(packed, planes.row(plane, i), bytes);
    }
  }
}

std::size_t plane_words(const Weights& weights) { return (weights.columns + 63) / 64; }

std::size_t vector_bytes(const Weights& weights, unsigned activation_bits) {
  return plane_words(weights) * 8 * activation_bits;  // whole cache lines: activation_bits >= 8
}

std::int64_t pack_vector(const Weights& weights, const std::int32_t* x, unsigned activation_bits,
                         std::uint8_t* vector) {
  const std::size_t bytes = plane_words(weights) * 8;
  for (unsigned plane = 0; plane < activation_bits; ++plane, vector += bytes) {
    std::memset(vector, 0, bytes);
    for (std::size_t j = 0; j < weights.columns; ++j) {
      const std::uint32_t bit = (static_cast<std::uint32_t>(x[j]) >> plane) & 1;
      vector[j / 8] |= static_cast<std::uint8_t>(bit << (j % 8));
    }
  }
  return std::accumulate(x, x + weights.columns, std::int64_t{0});
}

/// Up to eight bytes, four or eight, as a word.
std::uint64_t word(const std::uint8_t* from, std::size_t bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, from, bytes < 8 ? 4 : 8);
  return value;
}

/// The number of ones in a AND b. Ones are counted in bytes, which can hold the up to 8 ones of
/// each of 31 words, with operations that every CPU has for vectors.
std::int64_t count_ones(const std::uint8_t* a, const std::uint8_t* b, std::size_t bytes) {
  constexpr std::size_t kBytes = 31 * 8;
  constexpr std::uint64_t k1 = 0x5555555555555555, k2 = 0x3333333333333333, k4 = 0x0F0F0F0F0F0F0F0F,
                          k8 = 0x00FF00FF00FF00FF;
  std::int64_t ones = 0;
  for (std::size_t first = 0; first < bytes; first += kBytes) {
    std::uint64_t counts = 0;
    for (std::size_t at = first; at < std::min(bytes, first + kBytes); at += 8) {
      std::uint64_t v = word(a + at, bytes - at) & word(b + at, bytes - at);
      v -= (v >> 1) & k1;
      v = (v & k2) + ((v >> 2) & k2);
      counts += (v + (v >> 4)) & k4;
    }
    const std::uint64_t pairs = (counts & k8) + ((counts >> 8) & k8);
    ones += static_cast<std::int64_t>((pairs * 0x0001000100010001) >> 48);
  }
  return ones;
}

/// The weight of a plane of a number in two's complement.
std::int64_t plane_weight(unsigned plane, unsigned planes) {
  const std::int64_t value = std::int64_t{1} << plane;
  return plane + 1 == planes ? -value : value;
}

void multiply(const Weights& weights, const Activations& x, std::size_t first_row, std::size_t rows,
              std::int64_t* y) {
  const std::size_t bytes = plane_words(weights) * 8, row_bytes = bytes * weights.bits;
  for (std::size_t i = first_row; i < first_row + rows; ++i) {
    const std::uint8_t* row = weights.packed + i * row_bytes;
    for (std::size_t v = 0; v < x.batch; ++v) {
      const std::uint8_t* vector = x.vectors + v * x.vector_bytes;
      y[v * weights.rows + i] = multiply_planes(row, vector, bytes, bytes, weights.bits, x.bits) -
                                (weights.bits == 1 ? x.sums[v] : 0);
    }
  }
}

}  // namespace

std::int64_t multiply_planes(const std::uint8_t* row, const std::uint8_t* x, std::size_t stride,
                             std::size_t bytes, unsigned bits, unsigned activation_bits) {
  std::int64_t total = 0;
  for (unsigned plane = 0; plane < bits; ++plane) {
    const std::int64_t weight = bits == 1 ? 2 : plane_weight(plane, bits);
    for (unsigned j = 0; j < activation_bits; ++j) {
      const std::int64_t ones = count_ones(row + plane * stride, x + j * stride, bytes);
      total += weight * plane_weight(j, activation_bits) * ones;
    }
  }
  return total;
}

const Kernels kKernels = {packed_bytes, pack, vector_bytes, pack_vector, multiply};

}  // namespace portable
}  // namespace nescio::bitserial
