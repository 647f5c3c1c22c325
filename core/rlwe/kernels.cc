#include "rlwe/kernels.h"

namespace nescio::rlwe {
namespace {

/// One word: a register of one lane.
struct Vector {
  static constexpr std::size_t kLanes = 1;
  struct Products {
    std::uint64_t x;
    void operator+=(const Products& y) { x += y.x; }
  };
  template <std::size_t t>
  struct Halves {};

  std::uint32_t x;

  static Vector load(const std::uint32_t* from) { return {*from}; }
  static Vector broadcast(std::uint32_t word) { return {word}; }
  void store(std::uint32_t* to) const { *to = x; }
};

Vector operator+(Vector a, Vector b) { return {a.x + b.x}; }
Vector operator-(Vector a, Vector b) { return {a.x - b.x}; }
Vector min(Vector a, Vector b) { return {a.x < b.x ? a.x : b.x}; }
Vector multiply_low(Vector a, Vector b) { return {a.x * b.x}; }
Vector::Products multiply(Vector a, Vector b) { return {std::uint64_t{a.x} * b.x}; }
Vector high(const Vector::Products& x) { return {static_cast<std::uint32_t>(x.x >> 32)}; }
Vector low(const Vector::Products& x) { return {static_cast<std::uint32_t>(x.x)}; }

}  // namespace
}  // namespace nescio::rlwe

#include "rlwe/coefficients_impl.h"
#include "rlwe/ntt_impl.h"

namespace nescio::rlwe {

const Kernels& kernels_of(Tier tier) { return NESCIO_PICK(tier, kKernels); }

namespace portable {

NESCIO_DEFINE_RLWE_KERNELS

}  // namespace portable
}  // namespace nescio::rlwe
