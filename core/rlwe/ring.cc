#include "rlwe/ring.h"

namespace nescio::rlwe {
namespace {

consteval std::size_t reverse_bits(std::size_t k) {
  std::size_t reversed = 0;
  for (unsigned bit = 0; bit < kDegreeBits; ++bit) {
    reversed |= (k >> bit & 1) << (kDegreeBits - 1 - bit);
  }
  return reversed;
}

consteval Twiddles make_twiddles(const Prime& prime) {
  Twiddles twiddles{};
  std::uint64_t up = 1, down = 1;
  const std::uint64_t root_inverse = power(prime.root, prime.p - 2, prime.p);
  for (std::size_t exponent = 0; exponent < kDegree; ++exponent) {
    const std::size_t k = reverse_bits(exponent);
    const Factor forward = factor(up, prime.p), inverse = factor(down, prime.p);
    twiddles.forward[k] = forward.value;
    twiddles.forward_quotients[k] = forward.quotient;
    twiddles.inverse[k] = inverse.value;
    twiddles.inverse_quotients[k] = inverse.quotient;
    up = up * prime.root % prime.p;
    down = down * root_inverse % prime.p;
  }
  return twiddles;
}

}  // namespace

constinit const std::array<Twiddles, 2> kTwiddles = {make_twiddles(kPrimes[0]),
                                                     make_twiddles(kPrimes[1])};

}  // namespace nescio::rlwe
