#pragma once

// Products of polynomials whose coefficients are blocks with polynomials over F_2, by the additive
// FFT of Lin, Chung and Han, "Novel Polynomial Basis and Its Application to Reed-Solomon Erasure
// Codes", FOCS 2014, over a Cantor basis; from powers of x to theirs as in Gao and Mateer, "Additive
// Fast Fourier Transforms over Finite Fields", IEEE Transactions on Information Theory 56 (2010).
//
// Why it is exact for all 128 bits of a block at once. Let F = GF(2^32), and let V be the blocks,
// made an F-vector space by reading four elements of F in each. For E in V[X] and a in F_2[X], the
// product a E in V[X] has the coefficients sum_i a_i e_{k-i}: sums of blocks, whatever multiplication
// by F's elements means. At a point x of F, (a E)(x) = a(x) E(x), a scalar times a vector. So: evaluate
// both at the 2^m points of an F_2-subspace of F, multiply, and interpolate; the result is a E modulo
// the polynomial s_m that vanishes at these points. Only additions of blocks and multiplications by
// public elements of F touch the blocks.
//
// F is a tower of fields (tower_field.h), so points of small subspaces lie in small subfields, and to
// multiply by them costs less.
//
// With s_0 = x and s_{i+1} = s_i^2 + s_i, a polynomial is written in the basis of the products of
// the s_i, one for each number's bits. Point q is the sum of the b_i for the bits of q.

#include <cstddef>
#include <cstdint>

#include "base/block.h"
#include "base/tier.h"
#include "ot/codes/tower_field.h"

namespace nescio::ot {

/// Rows of 2^kRowBits coefficients are transformed by one call, on one thread.
inline constexpr unsigned kRowBits = 16;
inline constexpr unsigned kLeafBits = 8;
inline constexpr std::size_t kLeaf = std::size_t{1} << kLeafBits;

/// The multipliers of one transform's butterflies.
struct Twiddles {
  /// Of T(q) = the sum of b_{j+1} for the bits j of q, by the bytes of q.
  Multiplier of_byte[4][256];
  /// K_s of T(2^l lane + c), four times in a block, at [2^l - 1 + c][s][lane]: what the butterflies
  /// of four levels add to the multiplier of their first.
  Block of_branch[15][4][4];
  /// What the element `lane` of a block adds on level l of a transform of four rows at once, whose
  /// rows are the elements of blocks: K_s of T(2^l lane) at [l][s], an element each.
  Block of_lane[kRowBits][4];
};

/// The twiddles for the transforms of `rows` rows; lanes beyond them repeat the first.
void make_twiddles(std::uint32_t rows, Twiddles& twiddles);

/// One tier's code. Transforms are in place; the points of transform number `q` of 2^m points are
/// those from q 2^m on.
struct AdditiveFft {
  /// From powers of x to powers of s_k = x^(2^k) + x with coefficients of degree below 2^k, for
  /// 2^m blocks and k a power of two. Or, with `inverse`, back.
  void (*expand)(Block* f, unsigned m, unsigned k, bool inverse);
  /// The same for elements of F, or for coefficients that are to become such.
  void (*expand_elements)(std::uint32_t* f, unsigned m, unsigned k);

  /// The first transform of each column of 2^m rows of `width` blocks, a multiple of 4.
  void (*columns)(const Twiddles& twiddles, Block* f, unsigned m, std::size_t width, bool inverse);

  /// The values of a row of 2^m coefficients, kLeafBits < m <= kRowBits, in an order of the tier's.
  /// With `lanes`, the four elements of a block belong to rows q .. q + 3 (as far as there are so
  /// many) instead of one.
  void (*evaluate_row)(const Twiddles& twiddles, Block* f, unsigned m, std::uint32_t q, bool lanes);

  /// Multiplies a row with the elements `lane` of the blocks of `values`, which `evaluate_row` has
  /// made: transforms it, multiplies, transforms back.
  void (*multiply_row)(const Twiddles& twiddles, Block* f, unsigned m, std::uint32_t q,
                       const Block* values, unsigned lane);
};

/// The code of `tier`, or of the next narrower tier that has it.
const AdditiveFft& additive_fft(Tier tier);

NESCIO_TIERS(extern const AdditiveFft kAdditiveFft;)

}  // namespace nescio::ot
