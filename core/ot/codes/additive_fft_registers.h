// Transforms of up to sixteen coefficients in registers: the inner part of additive_fft_impl.h,
// which includes this file.

namespace nescio::ot {
namespace {

#define NESCIO_ALWAYS_INLINE [[gnu::always_inline]] inline

// Loops over registers are unrolled completely; otherwise the compiler keeps the arrays in memory.
// Not under AddressSanitizer, where the unrolled code takes minutes to compile.
#if defined(__SANITIZE_ADDRESS__)
#define NESCIO_UNROLL
#else
#define NESCIO_UNROLL _Pragma("GCC unroll 16")
#endif

/// True if loops over products of `terms` terms are unrolled. Without an instruction for products of
/// bytes, a product of four terms takes 150 instructions: unrolled loops would dominate the compile
/// time of this file and save next to nothing.
template <int terms>
constexpr bool kUnrolled = Vector::kFastProduct || terms <= 2;

template <int count, bool unrolled, class Step>
NESCIO_ALWAYS_INLINE void repeat_step(const Step& step) {
  if constexpr (unrolled) {
    NESCIO_UNROLL
    for (int i = 0; i < count; ++i) step(i);
  } else {
#pragma GCC unroll 1
    for (int i = 0; i < count; ++i) step(i);
  }
}

constexpr unsigned kKernelBits = 4;
constexpr std::size_t kKernel = 1 << kKernelBits;

// ---- Multiplication by elements of F --------------------------------------------------------------

/// Multiplies x by an element with the given K_s. All K_s from `terms` on are zero.
template <int terms>
NESCIO_ALWAYS_INLINE Vector multiply(Vector x, const Vector* k) {
  Vector sum = multiply_bytes(x, k[0]);
  if constexpr (terms > 1) sum = sum ^ multiply_bytes(swap_bytes<1>(x), k[1]);
  if constexpr (terms > 2)
    sum = sum ^ multiply_bytes(swap_bytes<2>(x), k[2]) ^ multiply_bytes(swap_bytes<3>(x), k[3]);
  return sum;
}

/// Computes the K_s of each element t = t0 + t1 u + (t2 + t3 u) v. Let d2 + d3 u = b_15 (t2 + t3 u).
///
///     K_0 = t0, t0+t1, t0+t2, t0+t1+t2+t3        K_1 = b_7 t1, t1, b_7 (t1+t3), t1+t3
///     K_2 = d2, d2+d3, t2, t2+t3                 K_3 = b_7 d3, d3, b_7 t3, t3
NESCIO_ALWAYS_INLINE void multipliers(Vector t, Vector* k) {
  constexpr unsigned kZero = 0x80;
  constexpr std::uint32_t kC0 = kB15 & 0xFF, kC1 = kB15 >> 8, kSquare = kB7 ^ 0x0E;  // b_7 + b_6
  static_assert(kC1 == kB7);
  const Vector b7 = Vector::broadcast(kB7 | 1 << 8 | kB7 << 16 | 1 << 24);
  const Vector b15[2] = {Vector::broadcast(kC0 | (kC0 ^ kC1) << 8 | 1 << 16 | 1 << 24),
                         Vector::broadcast(kSquare | kC1 << 8)};
  const Vector low = shuffle_bytes(t, 0, 1, 0, 1) ^ shuffle_bytes(t, kZero, kZero, 2, 3);
  const Vector high = multiply_bytes(shuffle_bytes(t, 2, 3, 2, 3), b15[0]) ^
                      multiply_bytes(shuffle_bytes(t, 3, 2, kZero, kZero), b15[1]);
  k[0] = shuffle_bytes(low, 0, 0, 2, 2) ^ shuffle_bytes(low, kZero, 1, kZero, 3);
  k[1] = multiply_bytes(shuffle_bytes(low, 1, 1, 3, 3), b7);
  k[2] = shuffle_bytes(high, 0, 0, 2, 2) ^ shuffle_bytes(high, kZero, 1, kZero, 3);
  k[3] = multiply_bytes(shuffle_bytes(high, 1, 1, 3, 3), b7);
}

// ---- Transforms in registers ---------------------------------------------------------------------

template <int count, int stride>
NESCIO_ALWAYS_INLINE void add_registers(Vector* to, const Vector* from) {
  NESCIO_UNROLL
  for (int i = 0; i < count; ++i) to[i * stride] = to[i * stride] ^ from[i * stride];
}

/// The same as `expand` (additive_fft_impl.h), for coefficients in registers.
template <int M, int k, int stride, bool inverse>
NESCIO_ALWAYS_INLINE void expand_registers(Vector* x) {
  if constexpr (M > k) {
    constexpr int length = 1 << (M - 1), shift = 1 << (M - 1 - k);
    Vector* const high = x + length * stride;
    Vector* const spill = x + (2 * length - shift) * stride;
    if constexpr (!inverse) {
      add_registers<shift, stride>(high, spill);
      add_registers<length - shift, stride>(x + shift * stride, high);
    }
    expand_registers<M - 1, k, stride, inverse>(x);
    expand_registers<M - 1, k, stride, inverse>(high);
    if constexpr (inverse) {
      add_registers<length - shift, stride>(x + shift * stride, high);
      add_registers<shift, stride>(high, spill);
    }
  }
}

/// Converts from powers of x to the products of the s_i.
template <int M, int stride, bool inverse>
NESCIO_ALWAYS_INLINE void convert(Vector* x) {
  if constexpr (M >= 2) {
    constexpr int k = M > 2 ? 2 : 1;
    if constexpr (!inverse) expand_registers<M, k, stride, false>(x);
    NESCIO_UNROLL
    for (int l = 0; l < 1 << k; ++l) convert<M - k, (stride << k), inverse>(x + l * stride);
    NESCIO_UNROLL
    for (int j = 0; j < 1 << (M - k); ++j) convert<k, stride, inverse>(x + (j << k) * stride);
    if constexpr (inverse) expand_registers<M, k, stride, true>(x);
  }
}

/// The multipliers of a kernel: on each level the one of the first branch, and what the other
/// branches add to it.
struct KernelTwiddles {
  Vector base[kKernelBits][4];
  const Block (*offsets)[4][4];
};

template <int terms>
NESCIO_ALWAYS_INLINE Vector multiply(const KernelTwiddles& b, int level, int branch, bool rows,
                                     Vector x) {
  Vector k[4];
  const Block(&offset)[4][4] = b.offsets[(1 << level) - 1 + branch];
  NESCIO_UNROLL
  for (int s = 0; s < terms; ++s) {
    k[s] = b.base[level][s] ^ (rows ? Vector::load(offset[s]) : Vector::broadcast(offset[s][0]));
  }
  return multiply<terms>(x, k);
}

/// The butterflies of one level of 2^M registers: each turns two coefficients into the values at t
/// and t + 1.
template <int M, int level, int terms, bool rows, bool inverse>
NESCIO_ALWAYS_INLINE void butterflies(const KernelTwiddles& b, Vector* x) {
  constexpr int distance = 1 << (M - 1 - level);
  repeat_step<1 << (M - 1), kUnrolled<terms>>([&](int pair) {
    const int branch = pair / distance, i = pair % distance;
    Vector& low = x[branch * 2 * distance + i];
    Vector& high = x[branch * 2 * distance + i + distance];
    if constexpr (inverse) high = high ^ low;
    low = low ^ multiply<terms>(b, level, branch, rows, high);
    if constexpr (!inverse) high = high ^ low;
  });
}

template <int M, int level, int terms, bool rows>
NESCIO_ALWAYS_INLINE void evaluate(const KernelTwiddles& b, Vector* x) {
  if constexpr (level == 0) convert<M, 1, false>(x);
  if constexpr (level < M) {
    butterflies<M, level, terms, rows, false>(b, x);
    evaluate<M, level + 1, terms, rows>(b, x);
  }
}

template <int M, int level, int terms, bool rows>
NESCIO_ALWAYS_INLINE void interpolate(const KernelTwiddles& b, Vector* x) {
  if constexpr (level < M) {
    interpolate<M, level + 1, terms, rows>(b, x);
    butterflies<M, level, terms, rows, true>(b, x);
  }
  if constexpr (level == 0) convert<M, 1, true>(x);
}

/// The coset of points at which a transform evaluates. The four elements of a block belong either
/// to one row or to four rows, which have different cosets.
struct Coset {
  const Twiddles& twiddles;
  std::uint32_t q;  ///< the number of the transform, for four rows of the first one
  /// For four rows: levels of the rows that are done. For one row: negative.
  int lane_level;

  Coset child(unsigned levels, std::uint32_t branch) const {
    return {twiddles, (q << levels) + branch,
            lane_level < 0 ? lane_level : lane_level + static_cast<int>(levels)};
  }
  bool lanes() const { return lane_level >= 0; }
};

NESCIO_ALWAYS_INLINE Multiplier multiplier(const Twiddles& t, std::uint32_t q) {
  return t.byte_table[0][q & 255] ^ t.byte_table[1][(q >> 8) & 255] ^
         t.byte_table[2][(q >> 16) & 255] ^ t.byte_table[3][q >> 24];
}

NESCIO_ALWAYS_INLINE std::uint32_t term(const Multiplier& k, int s) {
  return static_cast<std::uint32_t>((s < 2 ? k.lo : k.hi) >> (32 * (s % 2)));
}

template <int levels, int terms>
NESCIO_ALWAYS_INLINE KernelTwiddles kernel_twiddles(const Coset& coset) {
  KernelTwiddles b;
  b.offsets = coset.twiddles.branch_table;
  NESCIO_UNROLL
  for (int level = 0; level < levels; ++level) {
    const Multiplier k = multiplier(coset.twiddles, coset.q << level);
    NESCIO_UNROLL
    for (int s = 0; s < terms; ++s) {
      b.base[level][s] = Vector::broadcast(term(k, s));
      if (coset.lanes()) {
        const Block& lane = coset.twiddles.lane_table[coset.lane_level + level][s];
        b.base[level][s] = b.base[level][s] ^ Vector::broadcast(lane);
      }
    }
  }
  return b;
}

/// Calls kernel(terms) with the number of K_s that can be nonzero, where `last` is the largest
/// number of a transform on the kernel's first level.
template <class Kernel>
NESCIO_ALWAYS_INLINE void with_terms(const Coset& coset, std::uint32_t last, const Kernel& kernel) {
  const std::uint32_t bits = (coset.lanes() ? 3u << coset.lane_level : 0u) | last;
  if (bits < 1u << (7 - kKernelBits + 1)) {
    kernel(std::integral_constant<int, 1>{});
  } else if (bits < 1u << (15 - kKernelBits + 1)) {
    kernel(std::integral_constant<int, 2>{});
  } else {
    kernel(std::integral_constant<int, 4>{});
  }
}

}  // namespace
}  // namespace nescio::ot
