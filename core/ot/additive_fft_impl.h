// The body of additive_fft*.cc: each tier's file defines a register `Vector` of blocks, includes
// this once and compiles it with its own flags. All of it is private to the file that includes it.
//
// Vector has kBlocks; load, store; repeat of a block and of a word, which fill a register; and ^. With
// it come times(a, b), products of bytes in GF(2^8), constant time; exchange<s>, choose and take, which
// move bytes within elements and blocks; transpose(x), which turns kBlocks registers as a matrix of
// blocks.

namespace nescio::ot {
namespace {

#define NESCIO_ALWAYS [[gnu::always_inline]] inline

constexpr unsigned kKernelBits = 4;
constexpr std::size_t kKernel = 1 << kKernelBits;

// ---- Multiplication by elements of F --------------------------------------------------------------

/// x times an element whose K_s are given, of which the first `parts` may be other than zero.
template <int parts>
NESCIO_ALWAYS Vector multiply(Vector x, const Vector* k) {
  Vector sum = times(x, k[0]);
  if constexpr (parts > 1) sum = sum ^ times(exchange<1>(x), k[1]);
  if constexpr (parts > 2) sum = sum ^ times(exchange<2>(x), k[2]) ^ times(exchange<3>(x), k[3]);
  return sum;
}

/// The K_s of t = t0 + t1 u + (t2 + t3 u) v, an element each. With d2 + d3 u = b_15 (t2 + t3 u):
/// K_0 = t0, t0+t1, t0+t2, t0+t1+t2+t3; K_1 = b_7 t1, t1, b_7 (t1+t3), t1+t3;
/// K_2 = d2, d2+d3, t2, t2+t3; K_3 = b_7 d3, d3, b_7 t3, t3.
NESCIO_ALWAYS void multipliers(Vector t, Vector* k) {
  constexpr unsigned kZero = 0x80;
  constexpr std::uint32_t kC0 = kB15 & 0xFF, kC1 = kB15 >> 8, kSquare = kB7 ^ 0x0E;  // b_7 + b_6
  static_assert(kC1 == kB7);
  const Vector b7 = Vector::repeat(kB7 | 1 << 8 | kB7 << 16 | 1 << 24);
  const Vector b15[2] = {Vector::repeat(kC0 | (kC0 ^ kC1) << 8 | 1 << 16 | 1 << 24),
                         Vector::repeat(kSquare | kC1 << 8)};
  const Vector low = choose(t, 0, 1, 0, 1) ^ choose(t, kZero, kZero, 2, 3);
  const Vector high =
      times(choose(t, 2, 3, 2, 3), b15[0]) ^ times(choose(t, 3, 2, kZero, kZero), b15[1]);
  k[0] = choose(low, 0, 0, 2, 2) ^ choose(low, kZero, 1, kZero, 3);
  k[1] = times(choose(low, 1, 1, 3, 3), b7);
  k[2] = choose(high, 0, 0, 2, 2) ^ choose(high, kZero, 1, kZero, 3);
  k[3] = times(choose(high, 1, 1, 3, 3), b7);
}

// ---- Powers of x and of s_k ----------------------------------------------------------------------

NESCIO_ALWAYS void add_run(Block* to, const Block* from, std::size_t count) {
  constexpr std::size_t kStep = Vector::kBlocks;
  std::size_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    (Vector::load(to + i) ^ Vector::load(from + i)).store(to + i);
  }
  for (; i < count; ++i) to[i] ^= from[i];
}

NESCIO_ALWAYS void add_run(std::uint32_t* to, const std::uint32_t* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] ^= from[i];
}

/// Divides by s_k^(2^r) = x^length + x^shift, where length = 2^(k+r) and shift = 2^r, in place:
/// 2 length coefficients become remainder and quotient. Or, with `inverse`, back.
template <class T>
void divide(T* f, std::size_t length, std::size_t shift, std::size_t unit, bool inverse) {
  const auto add_spill = [=] {
    add_run(f + length * unit, f + (2 * length - shift) * unit, shift * unit);
  };
  if (!inverse) add_spill();
  add_run(f + shift * unit, f + length * unit, (length - shift) * unit);
  if (inverse) add_spill();
}

/// From powers of x to powers of s_k = x^(2^k) + x with coefficients of degree below 2^k.
template <class T>
void expand(T* f, unsigned m, unsigned k, std::size_t unit, bool inverse) {
  if (m == k) return;
  const std::size_t length = std::size_t{1} << (m - 1), shift = std::size_t{1} << (m - 1 - k);
  if (!inverse) divide(f, length, shift, unit, false);
  expand(f, m - 1, k, unit, inverse);
  expand(f + length * unit, m - 1, k, unit, inverse);
  if (inverse) divide(f, length, shift, unit, true);
}

// ---- Transforms in registers ---------------------------------------------------------------------

template <int count, int stride>
NESCIO_ALWAYS void add_registers(Vector* to, const Vector* from) {
#pragma GCC unroll 16
  for (int i = 0; i < count; ++i) to[i * stride] = to[i * stride] ^ from[i * stride];
}

/// `expand` for elements that are registers.
template <int M, int k, int stride, bool inverse>
NESCIO_ALWAYS void expand_registers(Vector* x) {
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

/// From powers of x to the products of the s_i.
template <int M, int stride, bool inverse>
NESCIO_ALWAYS void convert(Vector* x) {
  if constexpr (M >= 2) {
    constexpr int k = M > 2 ? 2 : 1;
    if constexpr (!inverse) expand_registers<M, k, stride, false>(x);
#pragma GCC unroll 16
    for (int l = 0; l < 1 << k; ++l) convert<M - k, (stride << k), inverse>(x + l * stride);
#pragma GCC unroll 16
    for (int j = 0; j < 1 << (M - k); ++j) convert<k, stride, inverse>(x + (j << k) * stride);
    if constexpr (inverse) expand_registers<M, k, stride, true>(x);
  }
}

/// What the multipliers of a kernel's levels have in common, and what sets its branches apart.
struct Branches {
  Vector first[kKernelBits][4];
  const Block (*own)[4][4];
};

template <int parts>
NESCIO_ALWAYS Vector multiply(const Branches& b, int level, int branch, bool rows, Vector x) {
  Vector k[4];
  const Block(&own)[4][4] = b.own[(1 << level) - 1 + branch];
#pragma GCC unroll 4
  for (int s = 0; s < parts; ++s) {
    k[s] = b.first[level][s] ^ (rows ? Vector::load(own[s]) : Vector::repeat(own[s][0]));
  }
  return multiply<parts>(x, k);
}

/// The butterflies of one level of 2^M registers: values at t and t + 1 from a pair's coefficients.
template <int M, int level, int parts, bool rows, bool inverse>
NESCIO_ALWAYS void butterflies(const Branches& b, Vector* x) {
  constexpr int distance = 1 << (M - 1 - level);
#pragma GCC unroll 16
  for (int branch = 0; branch < 1 << level; ++branch) {
#pragma GCC unroll 16
    for (int i = 0; i < distance; ++i) {
      Vector& low = x[branch * 2 * distance + i];
      Vector& high = x[branch * 2 * distance + i + distance];
      if constexpr (inverse) high = high ^ low;
      low = low ^ multiply<parts>(b, level, branch, rows, high);
      if constexpr (!inverse) high = high ^ low;
    }
  }
}

template <int M, int level, int parts, bool rows>
NESCIO_ALWAYS void evaluate(const Branches& b, Vector* x) {
  if constexpr (level == 0) convert<M, 1, false>(x);
  if constexpr (level < M) {
    butterflies<M, level, parts, rows, false>(b, x);
    evaluate<M, level + 1, parts, rows>(b, x);
  }
}

template <int M, int level, int parts, bool rows>
NESCIO_ALWAYS void interpolate(const Branches& b, Vector* x) {
  if constexpr (level < M) {
    interpolate<M, level + 1, parts, rows>(b, x);
    butterflies<M, level, parts, rows, true>(b, x);
  }
  if constexpr (level == 0) convert<M, 1, true>(x);
}

/// How the elements of a block differ from each other: those of four rows, or not at all.
struct Place {
  const Twiddles& twiddles;
  std::uint32_t q;
  /// Levels of the row that are done, if its elements are of four rows; else negative.
  int lane_level;

  Place below(unsigned levels, std::uint32_t branch) const {
    return {twiddles, (q << levels) + branch,
            lane_level < 0 ? lane_level : lane_level + static_cast<int>(levels)};
  }
  bool lanes() const { return lane_level >= 0; }
};

NESCIO_ALWAYS Multiplier multiplier(const Twiddles& t, std::uint32_t q) {
  return t.of_byte[0][q & 255] ^ t.of_byte[1][(q >> 8) & 255] ^ t.of_byte[2][(q >> 16) & 255] ^
         t.of_byte[3][q >> 24];
}

NESCIO_ALWAYS std::uint32_t part(const Multiplier& k, int s) {
  return static_cast<std::uint32_t>((s < 2 ? k.lo : k.hi) >> (32 * (s % 2)));
}

template <int levels, int parts>
NESCIO_ALWAYS Branches branches_of(const Place& place) {
  Branches b;
  b.own = place.twiddles.of_branch;
#pragma GCC unroll 4
  for (int level = 0; level < levels; ++level) {
    const Multiplier k = multiplier(place.twiddles, place.q << level);
#pragma GCC unroll 4
    for (int s = 0; s < parts; ++s) {
      b.first[level][s] = Vector::repeat(part(k, s));
      if (place.lanes()) {
        const Block& lane = place.twiddles.of_lane[place.lane_level + level][s];
        b.first[level][s] = b.first[level][s] ^ Vector::repeat(lane);
      }
    }
  }
  return b;
}

/// Calls kernel(parts) with as many parts as the multipliers need when the lowest of a kernel's
/// levels has branches up to the one of row `last`.
template <class Kernel>
NESCIO_ALWAYS void with_parts(const Place& place, std::uint32_t last, const Kernel& kernel) {
  const std::uint32_t bits = (place.lanes() ? 3u << place.lane_level : 0u) | last;
  if (bits < 1u << (7 - kKernelBits + 1)) {
    kernel(std::integral_constant<int, 1>{});
  } else if (bits < 1u << (15 - kKernelBits + 1)) {
    kernel(std::integral_constant<int, 2>{});
  } else {
    kernel(std::integral_constant<int, 4>{});
  }
}

// ---- Transforms of columns -----------------------------------------------------------------------

template <int M, int parts, bool inverse>
void column_kernel(const Place& place, Block* f, std::size_t width) {
  const Branches b = branches_of<M, parts>(place);
  for (std::size_t at = 0; at < width; at += Vector::kBlocks) {
    Vector x[1 << M];
#pragma GCC unroll 16
    for (int i = 0; i < 1 << M; ++i) x[i] = Vector::load(f + i * width + at);
    if constexpr (inverse) {
      interpolate<M, 0, parts, false>(b, x);
    } else {
      evaluate<M, 0, parts, false>(b, x);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 1 << M; ++i) x[i].store(f + i * width + at);
  }
}

template <int M, bool inverse>
void some_columns(const Place& place, Block* f, std::size_t width) {
  with_parts(place, place.q, [&](auto parts) {
    column_kernel<M, decltype(parts)::value, inverse>(place, f, width);
  });
}

template <bool inverse>
void columns(const Place& place, Block* f, unsigned m, std::size_t width) {
  if (m == 1) return some_columns<1, inverse>(place, f, width);
  if (m == 2) return some_columns<2, inverse>(place, f, width);
  if (m == 3) return some_columns<3, inverse>(place, f, width);
  if (m == 4) return some_columns<4, inverse>(place, f, width);
  const unsigned k = m > 8 ? 8 : 4;
  const auto high = [&] { columns<inverse>(place, f, m - k, width << k); };
  const auto low = [&] {
    for (std::uint32_t j = 0; j < 1u << (m - k); ++j) {
      columns<inverse>(place.below(m - k, j), f + (j * width << k), k, width);
    }
  };
  if (inverse) {
    low();
    high();
    expand(f, m, k, width, true);
  } else {
    expand(f, m, k, width, false);
    high();
    low();
  }
}

// ---- Transforms of leaves ------------------------------------------------------------------------

constexpr unsigned kRowsOfLeaf = 1 << (kLeafBits - kKernelBits);

/// Applies a kernel to the rows of a leaf, as many at a time as a register has blocks.
template <class Kernel>
NESCIO_ALWAYS void leaf_rows(const Place& place, const Kernel& kernel) {
  const Place rows = place.below(kLeafBits - kKernelBits, 0);
  with_parts(rows, rows.q + kRowsOfLeaf - 1, [&](auto parts) {
    for (unsigned row = 0; row < kRowsOfLeaf; row += Vector::kBlocks) {
      const Place own = {rows.twiddles, rows.q + row, rows.lane_level};
      kernel(branches_of<kKernelBits, decltype(parts)::value>(own), parts, row * kKernel);
    }
  });
}

/// Register i of x gets block i of each of some rows.
NESCIO_ALWAYS void load_rows(const Block* f, Vector* x) {
#pragma GCC unroll 16
  for (std::size_t i = 0; i < kKernel; i += Vector::kBlocks) {
#pragma GCC unroll 4
    for (std::size_t row = 0; row < Vector::kBlocks; ++row) {
      x[i + row] = Vector::load(f + row * kKernel + i);
    }
    transpose(x + i);
  }
}

NESCIO_ALWAYS void store_rows(Vector* x, Block* f) {
#pragma GCC unroll 16
  for (std::size_t i = 0; i < kKernel; i += Vector::kBlocks) {
    transpose(x + i);
#pragma GCC unroll 4
    for (std::size_t row = 0; row < Vector::kBlocks; ++row) {
      x[i + row].store(f + row * kKernel + i);
    }
  }
}

void leaf_columns(const Place& place, Block* f) {
  expand(f, kLeafBits, kKernelBits, 1, false);
  some_columns<kKernelBits, false>(place, f, kKernel);
}

void leaf_columns_back(const Place& place, Block* f) {
  some_columns<kKernelBits, true>(place, f, kKernel);
  expand(f, kLeafBits, kKernelBits, 1, true);
}

/// The values at a leaf's points; they stay as the registers have them.
void evaluate_leaf(const Place& place, Block* f) {
  leaf_columns(place, f);
  leaf_rows(place, [f](const Branches& b, auto parts, std::size_t at) {
    Vector x[kKernel];
    load_rows(f + at, x);
    evaluate<kKernelBits, 0, decltype(parts)::value, true>(b, x);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kKernel; ++i) x[i].store(f + at + i * Vector::kBlocks);
  });
}

void multiply_leaf(const Place& place, Block* f, const Block* values, unsigned lane) {
  leaf_columns(place, f);
  leaf_rows(place, [=](const Branches& b, auto parts, std::size_t at) {
    Vector x[kKernel];
    load_rows(f + at, x);
    evaluate<kKernelBits, 0, decltype(parts)::value, true>(b, x);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kKernel; ++i) {
      Vector k[4];
      multipliers(take(Vector::load(values + at + i * Vector::kBlocks), lane), k);
      x[i] = multiply<4>(x[i], k);
    }
    interpolate<kKernelBits, 0, decltype(parts)::value, true>(b, x);
    store_rows(x, f + at);
  });
  leaf_columns_back(place, f);
}

// ---- Transforms of rows --------------------------------------------------------------------------

/// Blocks of each column that are copied to where they stand close together: a row's columns are
/// 4 KB apart, and a cache has few places for such.
constexpr std::size_t kSlab = 16;

template <bool inverse>
void row_columns(const Place& place, Block* f, unsigned levels) {
  alignas(64) Block slab[kSlab << (kRowBits - kLeafBits)];
  const std::size_t count = std::size_t{1} << levels;
  for (std::size_t at = 0; at < kLeaf; at += kSlab) {
    for (std::size_t j = 0; j < count; ++j) {
      for (std::size_t i = 0; i < kSlab; i += Vector::kBlocks) {
        Vector::load(f + j * kLeaf + at + i).store(slab + j * kSlab + i);
      }
    }
    columns<inverse>(place, slab, levels, kSlab);
    for (std::size_t j = 0; j < count; ++j) {
      for (std::size_t i = 0; i < kSlab; i += Vector::kBlocks) {
        Vector::load(slab + j * kSlab + i).store(f + j * kLeaf + at + i);
      }
    }
  }
}

void evaluate_row(const Twiddles& twiddles, Block* f, unsigned m, std::uint32_t q, bool lanes) {
  const unsigned levels = m - kLeafBits;
  const Place place = {twiddles, q, lanes ? 0 : -1};
  expand(f, m, kLeafBits, 1, false);
  row_columns<false>(place, f, levels);
  for (std::uint32_t j = 0; j < 1u << levels; ++j) {
    evaluate_leaf(place.below(levels, j), f + j * kLeaf);
  }
}

void multiply_row(const Twiddles& twiddles, Block* f, unsigned m, std::uint32_t q,
                  const Block* values, unsigned lane) {
  const unsigned levels = m - kLeafBits;
  const Place place = {twiddles, q, -1};
  expand(f, m, kLeafBits, 1, false);
  row_columns<false>(place, f, levels);
  for (std::uint32_t j = 0; j < 1u << levels; ++j) {
    multiply_leaf(place.below(levels, j), f + j * kLeaf, values + j * kLeaf, lane);
  }
  row_columns<true>(place, f, levels);
  expand(f, m, kLeafBits, 1, true);
}

// ---- What the tier offers ------------------------------------------------------------------------

void expand_blocks(Block* f, unsigned m, unsigned k, bool inverse) { expand(f, m, k, 1, inverse); }

void expand_elements(std::uint32_t* f, unsigned m, unsigned k) { expand(f, m, k, 1, false); }

void all_columns(const Twiddles& twiddles, Block* f, unsigned m, std::size_t width, bool inverse) {
  const Place place = {twiddles, 0, -1};
  inverse ? columns<true>(place, f, m, width) : columns<false>(place, f, m, width);
}

constexpr AdditiveFft kOwnFft = {expand_blocks, expand_elements, all_columns, evaluate_row,
                                 multiply_row};

#undef NESCIO_ALWAYS

}  // namespace
}  // namespace nescio::ot
