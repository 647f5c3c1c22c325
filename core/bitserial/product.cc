#include "bitserial/product.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/error.h"

namespace nescio::bitserial {

std::span<const Kernel* const> kernels_of(Tier tier) {
  static constexpr const Kernel* kPortable[] = {&portable::kPlanes};
  static_cast<void>(tier);
  return kPortable;
}

const Kernel& choose_kernel(const Planes& planes, Tier tier, std::string_view name) {
  static_cast<void>(planes);
  const auto kernels = kernels_of(tier);
  if (name.empty()) return *kernels.front();
  std::string names;
  for (const Kernel* kernel : kernels) {
    if (name == kernel->name) return *kernel;
    names += std::string(names.empty() ? "" : ", ") + kernel->name;
  }
  throw Error(ErrorKind::argument, "kernel: found '" + std::string(name) + "', expected one of " +
                                       names + " for the CPU tier " + tier_name(tier));
}

// The chapter's algorithm 2: planes of weights AND planes of activations, and the ones counted. A
// row's planes stand one after the other, and a vector's line is a plane of it.
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

unsigned lines(unsigned activation_bits) { return activation_bits; }

std::size_t line_bytes(std::size_t columns) { return (columns + 511) / 512 * 64; }

void lay_out(const std::int32_t* x, std::size_t n, unsigned activation_bits, std::uint8_t* lines) {
  const std::size_t stride = line_bytes(n);
  for (unsigned plane = 0; plane < activation_bits; ++plane, lines += stride) {
    std::memset(lines, 0, stride);
    for (std::size_t j = 0; j < n; ++j) {
      const std::uint32_t bit = (static_cast<std::uint32_t>(x[j]) >> plane) & 1;
      lines[j / 8] |= static_cast<std::uint8_t>(bit << (j % 8));
    }
  }
}

/// The ones of 64 words at most: counted in bytes, which hold 8 * 31, in steps that any processor's
/// vectors have.
std::int64_t count_ones(const std::uint64_t* a, const std::uint64_t* b, std::size_t n) {
  constexpr std::size_t kWords = 31;
  constexpr std::uint64_t k1 = 0x5555555555555555, k2 = 0x3333333333333333, k4 = 0x0F0F0F0F0F0F0F0F,
                          k8 = 0x00FF00FF00FF00FF;
  std::int64_t ones = 0;
  for (std::size_t first = 0; first < n; first += kWords) {
    std::uint64_t bytes = 0;
    for (std::size_t w = first; w < std::min(n, first + kWords); ++w) {
      std::uint64_t v = a[w] & b[w];
      v -= (v >> 1) & k1;
      v = (v & k2) + ((v >> 2) & k2);
      bytes += (v + (v >> 4)) & k4;
    }
    const std::uint64_t pairs = (bytes & k8) + ((bytes >> 8) & k8);
    ones += static_cast<std::int64_t>((pairs * 0x0001000100010001) >> 48);
  }
  return ones;
}

/// What a one in a plane of a number in two's complement is worth.
std::int64_t worth(unsigned plane, unsigned planes) {
  const std::int64_t value = std::int64_t{1} << plane;
  return plane + 1 == planes ? -value : value;
}

std::int64_t multiply_row(const Weights& weights, const std::uint64_t* row, unsigned bits,
                          const std::uint64_t* x, std::size_t x_stride) {
  const std::size_t words = (weights.columns + 63) / 64;
  std::int64_t total = 0;
  for (unsigned plane = 0; plane < weights.bits; ++plane, row += words) {
    const std::int64_t weight = weights.bits == 1 ? 2 : worth(plane, weights.bits);
    for (unsigned j = 0; j < bits; ++j) {
      total += weight * worth(j, bits) * count_ones(row, x + j * x_stride, words);
    }
  }
  return total;
}

void multiply(const Weights& weights, const Activations& x, std::size_t first_row, std::size_t rows,
              std::int64_t* y) {
  const std::size_t row_words = (weights.columns + 63) / 64 * weights.bits;
  const std::size_t x_words = x.line_bytes / 8;
  const auto* words = reinterpret_cast<const std::uint64_t*>(weights.packed);
  const auto* planes = reinterpret_cast<const std::uint64_t*>(x.lines);
  for (std::size_t i = first_row; i < first_row + rows; ++i) {
    for (std::size_t v = 0; v < x.batch; ++v) {
      const std::uint64_t* vector = planes + v * x.bits * x_words;
      y[v * weights.rows + i] =
          multiply_row(weights, words + i * row_words, x.bits, vector, x_words) -
          (weights.bits == 1 ? x.sums[v] : 0);
    }
  }
}

}  // namespace

const Kernel kPlanes = {"planes", packed_bytes, pack, lines, line_bytes, lay_out, multiply};

}  // namespace portable
}  // namespace nescio::bitserial
