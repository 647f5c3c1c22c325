// The body of additive_fft*.cc. Each tier's file defines a register type `Vector` of blocks,
// includes this file once and compiles it with the tier's flags. Everything here is private to the
// including file.
//
// The including file defines:
//
//   Vector                   kBlocks, load, store, broadcast of a block and of a word, and ^
//   Vector::kFastProduct     true if a product of bytes is one instruction
//   multiply_bytes(a, b)     products of bytes in GF(2^8), in constant time
//   swap_bytes<s>(x), shuffle_bytes(x, ...)    move bytes within elements
//   broadcast_element(x, lane)                 broadcasts an element of each block
//   transpose(x)             transposes kBlocks registers as a matrix of blocks

#include "ot/codes/additive_fft_registers.h"

namespace nescio::ot {
namespace {

// ---- Powers of x and of s_k ----------------------------------------------------------------------

NESCIO_ALWAYS_INLINE void xor_into(Block* to, const Block* from, std::size_t count) {
  constexpr std::size_t kStep = Vector::kBlocks;
  std::size_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    (Vector::load(to + i) ^ Vector::load(from + i)).store(to + i);
  }
  for (; i < count; ++i) to[i] ^= from[i];
}

NESCIO_ALWAYS_INLINE void xor_into(std::uint32_t* to, const std::uint32_t* from,
                                   std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] ^= from[i];
}

/// Divides by s_k^(2^r) = x^length + x^shift, where length = 2^(k+r) and shift = 2^r, in place:
/// 2 length coefficients become the remainder and the quotient. `inverse` undoes the division.
template <class T>
void divide(T* f, std::size_t length, std::size_t shift, std::size_t stride, bool inverse) {
  const auto add_spill = [=] {
    xor_into(f + length * stride, f + (2 * length - shift) * stride, shift * stride);
  };
  if (!inverse) add_spill();
  xor_into(f + shift * stride, f + length * stride, (length - shift) * stride);
  if (inverse) add_spill();
}

/// Converts from powers of x to powers of s_k = x^(2^k) + x with coefficients of degree below 2^k.
template <class T>
void expand(T* f, unsigned m, unsigned k, std::size_t stride, bool inverse) {
  if (m == k) return;
  const std::size_t length = std::size_t{1} << (m - 1), shift = std::size_t{1} << (m - 1 - k);
  if (!inverse) divide(f, length, shift, stride, false);
  expand(f, m - 1, k, stride, inverse);
  expand(f + length * stride, m - 1, k, stride, inverse);
  if (inverse) divide(f, length, shift, stride, true);
}

// ---- Transforms of columns -----------------------------------------------------------------------

template <int M, int terms, bool inverse>
void column_kernel(const Coset& coset, Block* f, std::size_t width) {
  const KernelTwiddles b = kernel_twiddles<M, terms>(coset);
  for (std::size_t at = 0; at < width; at += Vector::kBlocks) {
    Vector x[1 << M];
    NESCIO_UNROLL
    for (int i = 0; i < 1 << M; ++i) x[i] = Vector::load(f + i * width + at);
    if constexpr (inverse) {
      interpolate<M, 0, terms, false>(b, x);
    } else {
      evaluate<M, 0, terms, false>(b, x);
    }
    NESCIO_UNROLL
    for (int i = 0; i < 1 << M; ++i) x[i].store(f + i * width + at);
  }
}

template <int M, bool inverse>
void short_columns(const Coset& coset, Block* f, std::size_t width) {
  with_terms(coset, coset.q, [&](auto terms) {
    column_kernel<M, decltype(terms)::value, inverse>(coset, f, width);
  });
}

template <bool inverse>
void columns(const Coset& coset, Block* f, unsigned m, std::size_t width) {
  if (m == 1) return short_columns<1, inverse>(coset, f, width);
  if (m == 2) return short_columns<2, inverse>(coset, f, width);
  if (m == 3) return short_columns<3, inverse>(coset, f, width);
  if (m == 4) return short_columns<4, inverse>(coset, f, width);
  const unsigned k = m > 8 ? 8 : 4;
  const auto high = [&] { columns<inverse>(coset, f, m - k, width << k); };
  const auto low = [&] {
    for (std::uint32_t j = 0; j < 1u << (m - k); ++j) {
      columns<inverse>(coset.child(m - k, j), f + (j * width << k), k, width);
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

constexpr unsigned kLeafRows = 1 << (kLeafBits - kKernelBits);

/// Applies a kernel to the rows of a leaf, Vector::kBlocks rows at a time.
template <class Kernel>
NESCIO_ALWAYS_INLINE void leaf_rows(const Coset& coset, const Kernel& kernel) {
  const Coset rows = coset.child(kLeafBits - kKernelBits, 0);
  with_terms(rows, rows.q + kLeafRows - 1, [&](auto terms) {
    for (unsigned row = 0; row < kLeafRows; row += Vector::kBlocks) {
      const Coset row_coset = {rows.twiddles, rows.q + row, rows.lane_level};
      kernel(kernel_twiddles<kKernelBits, decltype(terms)::value>(row_coset), terms, row * kKernel);
    }
  });
}

/// Loads block i of each of Vector::kBlocks rows into register i of x.
NESCIO_ALWAYS_INLINE void load_rows(const Block* f, Vector* x) {
  NESCIO_UNROLL
  for (std::size_t i = 0; i < kKernel; i += Vector::kBlocks) {
    NESCIO_UNROLL
    for (std::size_t row = 0; row < Vector::kBlocks; ++row) {
      x[i + row] = Vector::load(f + row * kKernel + i);
    }
    transpose(x + i);
  }
}

NESCIO_ALWAYS_INLINE void store_rows(Vector* x, Block* f) {
  NESCIO_UNROLL
  for (std::size_t i = 0; i < kKernel; i += Vector::kBlocks) {
    transpose(x + i);
    NESCIO_UNROLL
    for (std::size_t row = 0; row < Vector::kBlocks; ++row) {
      x[i + row].store(f + row * kKernel + i);
    }
  }
}

void leaf_columns(const Coset& coset, Block* f) {
  expand(f, kLeafBits, kKernelBits, 1, false);
  short_columns<kKernelBits, false>(coset, f, kKernel);
}

void inverse_leaf_columns(const Coset& coset, Block* f) {
  short_columns<kKernelBits, true>(coset, f, kKernel);
  expand(f, kLeafBits, kKernelBits, 1, true);
}

/// Evaluates a leaf at its points. The values are stored in the order of the registers.
void evaluate_leaf(const Coset& coset, Block* f) {
  leaf_columns(coset, f);
  leaf_rows(coset, [f](const KernelTwiddles& b, auto terms, std::size_t at) {
    Vector x[kKernel];
    load_rows(f + at, x);
    evaluate<kKernelBits, 0, decltype(terms)::value, true>(b, x);
    NESCIO_UNROLL
    for (std::size_t i = 0; i < kKernel; ++i) x[i].store(f + at + i * Vector::kBlocks);
  });
}

void multiply_leaf(const Coset& coset, Block* f, const Block* values, unsigned lane) {
  leaf_columns(coset, f);
  leaf_rows(coset, [=](const KernelTwiddles& b, auto terms, std::size_t at) {
    Vector x[kKernel];
    load_rows(f + at, x);
    evaluate<kKernelBits, 0, decltype(terms)::value, true>(b, x);
    repeat_step<kKernel, kUnrolled<4>>([&](int i) {
      Vector k[4];
      multipliers(broadcast_element(Vector::load(values + at + i * Vector::kBlocks), lane), k);
      x[i] = multiply<4>(x[i], k);
    });
    interpolate<kKernelBits, 0, decltype(terms)::value, true>(b, x);
    store_rows(x, f + at);
  });
  inverse_leaf_columns(coset, f);
}

// ---- Transforms of rows --------------------------------------------------------------------------

/// Columns of a row that are copied to a contiguous buffer at a time. In the row itself the blocks
/// of a column are 4 KB apart and would evict each other from a set-associative cache.
constexpr std::size_t kSlab = 32;

template <bool inverse>
void row_columns(const Coset& coset, Block* f, unsigned levels) {
  alignas(64) Block slab[kSlab << (kRowBits - kLeafBits)];
  const std::size_t count = std::size_t{1} << levels;
  for (std::size_t at = 0; at < kLeaf; at += kSlab) {
    for (std::size_t j = 0; j < count; ++j) {
      for (std::size_t i = 0; i < kSlab; i += Vector::kBlocks) {
        Vector::load(f + j * kLeaf + at + i).store(slab + j * kSlab + i);
      }
    }
    columns<inverse>(coset, slab, levels, kSlab);
    for (std::size_t j = 0; j < count; ++j) {
      for (std::size_t i = 0; i < kSlab; i += Vector::kBlocks) {
        Vector::load(slab + j * kSlab + i).store(f + j * kLeaf + at + i);
      }
    }
  }
}

void evaluate_row(const Twiddles& twiddles, Block* f, unsigned m, std::uint32_t q, bool lanes) {
  const unsigned levels = m - kLeafBits;
  const Coset coset = {twiddles, q, lanes ? 0 : -1};
  expand(f, m, kLeafBits, 1, false);
  row_columns<false>(coset, f, levels);
  for (std::uint32_t j = 0; j < 1u << levels; ++j) {
    evaluate_leaf(coset.child(levels, j), f + j * kLeaf);
  }
}

void multiply_row(const Twiddles& twiddles, Block* f, unsigned m, std::uint32_t q,
                  const Block* values, unsigned lane) {
  const unsigned levels = m - kLeafBits;
  const Coset coset = {twiddles, q, -1};
  expand(f, m, kLeafBits, 1, false);
  row_columns<false>(coset, f, levels);
  for (std::uint32_t j = 0; j < 1u << levels; ++j) {
    multiply_leaf(coset.child(levels, j), f + j * kLeaf, values + j * kLeaf, lane);
  }
  row_columns<true>(coset, f, levels);
  expand(f, m, kLeafBits, 1, true);
}

// ---- The functions of the tier -------------------------------------------------------------------

void expand_blocks(Block* f, unsigned m, unsigned k, bool inverse) { expand(f, m, k, 1, inverse); }

void expand_elements(std::uint32_t* f, unsigned m, unsigned k) { expand(f, m, k, 1, false); }

void all_columns(const Twiddles& twiddles, Block* f, unsigned m, std::size_t width, bool inverse) {
  const Coset coset = {twiddles, 0, -1};
  inverse ? columns<true>(coset, f, m, width) : columns<false>(coset, f, m, width);
}

constexpr AdditiveFft kOwnFft = {expand_blocks, expand_elements, all_columns, evaluate_row,
                                 multiply_row};

#undef NESCIO_ALWAYS_INLINE
#undef NESCIO_UNROLL

}  // namespace
}  // namespace nescio::ot
