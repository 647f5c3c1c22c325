#pragma once

// Multiplies polynomials whose coefficients are blocks by polynomials over F_2. The algorithm is
// the additive FFT of Lin, Chung and Han, "Novel Polynomial Basis and Its Application to
// Reed-Solomon Erasure Codes", FOCS 2014, over a Cantor basis. The conversion from the monomial
// basis follows Gao and Mateer, "Additive Fast Fourier Transforms over Finite Fields", IEEE
// Transactions on Information Theory 56 (2010).
//
// Why the result is exact for all 128 bits of a block at once: let F = GF(2^32), and let V be the
// set of blocks. V is an F-vector space if a block is read as four elements of F. For E in V[X] and
// a in F_2[X], the product a E in V[X] has the coefficients sum_i a_i e_{k-i}. These are sums of
// blocks and do not depend on how V is multiplied by F. At a point x of F, (a E)(x) = a(x) E(x), a
// scalar times a vector. So both factors are evaluated at the 2^m points of an F_2-subspace of F,
// multiplied, and interpolated. The result is a E modulo s_m, the polynomial that vanishes at these
// points. Blocks are only added and multiplied by public elements of F.
//
// F is a tower of fields (tower_field.h): the points of small subspaces lie in small subfields,
// where multiplication costs less.
//
// With s_0 = x and s_{i+1} = s_i^2 + s_i, basis polynomial j is the product of the s_i over the
// bits i of j. Point q is the sum of the b_i over the bits i of q.

#include <cstddef>
#include <cstdint>

#include "base/block.h"
#include "base/tier.h"
#include "ot/codes/tower_field.h"

namespace nescio::ot {

/// One call, on one thread, transforms a row of 2^kRowBits coefficients.
inline constexpr unsigned kRowBits = 16;
inline constexpr unsigned kLeafBits = 8;
inline constexpr std::size_t kLeaf = std::size_t{1} << kLeafBits;

/// The twiddle factors of the butterflies, as multipliers (tower_field.h). T(q) is the sum of
/// b_{j+1} over the bits j of q; it is linear in q.
struct Twiddles {
  /// The multiplier of T(q) is the XOR of [i][byte i of q] over the four bytes of q.
  Multiplier byte_table[4][256];
  /// K_s of T(2^l lane + c), repeated four times in a block, at [2^l - 1 + c][s][lane]. A butterfly
  /// on level l of a four-level kernel adds it to the multiplier of the first branch.
  Block branch_table[15][4][4];
  /// For transforms of four rows at once, one row per element of a block: element `lane` of [l][s]
  /// is K_s of T(2^l lane), which row `lane` adds on level l.
  Block lane_table[kRowBits][4];
};

/// Computes the twiddle factors for transforms of `rows` rows. Lanes beyond the last row repeat the
/// first rows.
void make_twiddles(std::uint32_t rows, Twiddles& twiddles);

/// The functions of one CPU tier. Transforms are in place. The points of transform `q` of 2^m
/// points are those from q 2^m on.
struct AdditiveFft {
  /// Converts 2^m blocks from the monomial basis to powers of s_k = x^(2^k) + x with coefficients
  /// of degree below 2^k, where k is a power of two. `inverse` converts back.
  void (*expand)(Block* f, unsigned m, unsigned k, bool inverse);
  /// Converts elements of F in the same way.
  void (*expand_elements)(std::uint32_t* f, unsigned m, unsigned k);

  /// Applies transform 0 to each column of 2^m rows of `width` blocks, a multiple of 4.
  void (*columns)(const Twiddles& twiddles, Block* f, unsigned m, std::size_t width, bool inverse);

  /// Evaluates a row of 2^m coefficients, kLeafBits < m <= kRowBits. The order of the values
  /// depends on the tier. With `lanes`, element i of each block belongs to row q + i; otherwise all
  /// four elements belong to row q.
  void (*evaluate_row)(const Twiddles& twiddles, Block* f, unsigned m, std::uint32_t q, bool lanes);

  /// Multiplies a row by the polynomial whose values `evaluate_row` wrote to the elements `lane` of
  /// `values`: transforms the row, multiplies the values, transforms back.
  void (*multiply_row)(const Twiddles& twiddles, Block* f, unsigned m, std::uint32_t q,
                       const Block* values, unsigned lane);
};

/// The code of `tier`, or of the next narrower tier that has it.
const AdditiveFft& additive_fft(Tier tier);

NESCIO_TIERS(extern const AdditiveFft kAdditiveFft;)

}  // namespace nescio::ot
