// The transforms and products of kernels*.cc. Each tier's file defines a type `Vector` of 32-bit words,
// includes this file once and compiles it with the tier's flags. Everything here is private to the
// including file.
//
// The including file defines:
//
//   Vector                      kLanes, load, store, broadcast, + and -, min (all modulo 2^32, unsigned)
//   Vector::Products            64-bit products of words, and +=
//   multiply(a, b)              all 64 bits of the products
//   high(x), low(x)             the upper and lower words of products
//   multiply_low(a, b)          the lower words of products
//   Vector::Halves<t>           t is kLanes / 2, kLanes / 4, ..., 1; see below
//
// Butterflies at a distance t below kLanes are inside registers. For them, two registers that hold
// 2 kLanes consecutive words are rearranged, such that u has the words whose index has no bit t and v
// those that have it. Halves<t>::split goes from t = 2 t (or the words in order) to t, merge back, and
// twiddles(w) gives each lane its factor.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/block.h"
#include "rlwe/kernels.h"

namespace nescio::rlwe {
namespace {

#define NESCIO_ALWAYS_INLINE [[gnu::always_inline]] inline

/// The factors of a butterfly for each lane.
struct VectorFactor {
  Vector value, quotient;
};

/// x if x < bound, else x - bound; for x < 2 bound.
NESCIO_ALWAYS_INLINE Vector subtract_once(Vector x, Vector bound) { return min(x, x - bound); }

/// x w modulo p, below 2 p, for any words x.
NESCIO_ALWAYS_INLINE Vector multiply_by(Vector x, const VectorFactor& w, Vector p) {
  return multiply_low(x, w.value) - multiply_low(high(multiply(x, w.quotient)), p);
}

/// (x, y) becomes (x + w y, x - w y). Values are below 4 p before and after.
NESCIO_ALWAYS_INLINE void forward_butterfly(Vector& x, Vector& y, const VectorFactor& w, Vector p,
                                            Vector twice) {
  const Vector a = subtract_once(x, twice), b = multiply_by(y, w, p);
  x = a + b;
  y = a - b + twice;
}

/// (x, y) becomes (x + y, w (x - y)). Values are below 2 p before and after.
NESCIO_ALWAYS_INLINE void inverse_butterfly(Vector& x, Vector& y, const VectorFactor& w, Vector p,
                                            Vector twice) {
  const Vector sum = subtract_once(x + y, twice);
  y = multiply_by(x - y + twice, w, p);
  x = sum;
}

/// The butterflies of one distance t >= kLanes.
template <auto butterfly>
NESCIO_ALWAYS_INLINE void pass(std::uint32_t* row, std::size_t t, const std::uint32_t* values,
                               const std::uint32_t* quotients, Vector p, Vector twice) {
  const std::size_t groups = kDegree / (2 * t);
  for (std::size_t g = 0; g < groups; ++g) {
    const VectorFactor w = {Vector::broadcast(values[groups + g]),
                            Vector::broadcast(quotients[groups + g])};
    std::uint32_t *lower = row + 2 * g * t, *upper = lower + t;
    for (std::size_t k = 0; k < t; k += Vector::kLanes) {
      Vector x = Vector::load(lower + k), y = Vector::load(upper + k);
      butterfly(x, y, w, p, twice);
      x.store(lower + k);
      y.store(upper + k);
    }
  }
}

/// The factors of the butterflies of distance t in the 2 kLanes words from `first` on.
template <std::size_t t>
NESCIO_ALWAYS_INLINE VectorFactor inner_factor(const std::uint32_t* values,
                                               const std::uint32_t* quotients, std::size_t first) {
  const std::size_t at = (kDegree + first) / (2 * t);
  using Halves = typename Vector::template Halves<t>;
  return {Halves::twiddles(values + at), Halves::twiddles(quotients + at)};
}

template <std::size_t t>
NESCIO_ALWAYS_INLINE void forward_inside(Vector& u, Vector& v, const Twiddles& w, std::size_t first,
                                         Vector p, Vector twice) {
  if constexpr (t > 0) {
    using Halves = typename Vector::template Halves<t>;
    Halves::split(u, v);
    forward_butterfly(u, v, inner_factor<t>(w.forward.data(), w.forward_quotients.data(), first), p,
                      twice);
    forward_inside<t / 2>(u, v, w, first, p, twice);
    Halves::merge(u, v);
  }
}

template <std::size_t t>
NESCIO_ALWAYS_INLINE void inverse_inside(Vector& u, Vector& v, const Twiddles& w, std::size_t first,
                                         Vector p, Vector twice) {
  if constexpr (t > 0) {
    using Halves = typename Vector::template Halves<t>;
    Halves::split(u, v);
    inverse_inside<t / 2>(u, v, w, first, p, twice);
    inverse_butterfly(u, v, inner_factor<t>(w.inverse.data(), w.inverse_quotients.data(), first), p,
                      twice);
    Halves::merge(u, v);
  }
}

/// Calls step(u, v, first) on all pairs of registers.
template <class Step>
NESCIO_ALWAYS_INLINE void for_pairs(std::uint32_t* row, const Step& step) {
  constexpr std::size_t lanes = Vector::kLanes;
  for (std::size_t first = 0; first < kDegree; first += 2 * lanes) {
    Vector u = Vector::load(row + first), v = Vector::load(row + first + lanes);
    step(u, v, first);
    u.store(row + first);
    v.store(row + first + lanes);
  }
}

void forward(unsigned i, std::uint32_t* row) {
  const Twiddles& w = kTwiddles[i];
  const Vector p = Vector::broadcast(kPrimes[i].p), twice = p + p;
  for (std::size_t t = kDegree / 2; t >= Vector::kLanes; t /= 2) {
    pass<forward_butterfly>(row, t, w.forward.data(), w.forward_quotients.data(), p, twice);
  }
  for_pairs(row, [&](Vector& u, Vector& v, std::size_t first) {
    forward_inside<Vector::kLanes / 2>(u, v, w, first, p, twice);
    u = subtract_once(subtract_once(u, twice), p);
    v = subtract_once(subtract_once(v, twice), p);
  });
}

void inverse(unsigned i, std::uint32_t* row) {
  const Twiddles& w = kTwiddles[i];
  const Vector p = Vector::broadcast(kPrimes[i].p), twice = p + p;
  for_pairs(row, [&](Vector& u, Vector& v, std::size_t first) {
    inverse_inside<Vector::kLanes / 2>(u, v, w, first, p, twice);
  });
  for (std::size_t t = Vector::kLanes; t < kDegree; t *= 2) {
    pass<inverse_butterfly>(row, t, w.inverse.data(), w.inverse_quotients.data(), p, twice);
  }
  const VectorFactor n = {Vector::broadcast(kPrimes[i].degree_inverse.value),
                          Vector::broadcast(kPrimes[i].degree_inverse.quotient)};
  for_pairs(row, [&](Vector& u, Vector& v, std::size_t) {
    u = subtract_once(multiply_by(u, n, p), p);
    v = subtract_once(multiply_by(v, n, p), p);
  });
}

/// Terms whose products fit 64 bits: p < 2^30.
constexpr std::size_t kTerms = 16;

/// x / 2^32 modulo p, for x below 2^32 * 4 p.
NESCIO_ALWAYS_INLINE Vector reduce_products(const Vector::Products& x, Vector p, Vector p_inverse) {
  const Vector above = subtract_once(subtract_once(high(x), p + p), p);
  const Vector difference = above - high(multiply(multiply_low(low(x), p_inverse), p));
  return min(difference, difference + p);
}

void multiply(unsigned i, std::span<const Term> terms, std::uint32_t* out) {
  const Vector p = Vector::broadcast(kPrimes[i].p);
  const Vector p_inverse = Vector::broadcast(kPrimes[i].inverse);
  for (std::size_t begin = 0; begin < terms.size(); begin += kTerms) {
    const std::size_t end = begin + kTerms < terms.size() ? begin + kTerms : terms.size();
    for (std::size_t k = 0; k < kDegree; k += Vector::kLanes) {
      Vector::Products sum =
          multiply(Vector::load(terms[begin].a + k), Vector::load(terms[begin].b + k));
      for (std::size_t t = begin + 1; t < end; ++t) {
        sum += multiply(Vector::load(terms[t].a + k), Vector::load(terms[t].b + k));
      }
      Vector result = reduce_products(sum, p, p_inverse);
      if (begin > 0) result = subtract_once(result + Vector::load(out + k), p);
      result.store(out + k);
    }
  }
}

}  // namespace
}  // namespace nescio::rlwe
