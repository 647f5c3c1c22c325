// Compiled for AVX-512 and GFNI. Includes nothing that could leave shared code behind.
//
// Eight blocks at a time, transposed so that a byte holds one bit position of all eight. The
// recurrence is then a product of 8 x 8 bit matrices and bytes, which GF2P8AFFINEQB computes for 64
// bytes at once. With r_g the inputs and z_g the results of group g,
//
//   z_g = (I + L_g)^-1 (r_g + A_1 z_{g-1} + A_2 z_{g-2} + A_3 z_{g-3} + A_4 z_{g-4}),
//
// where L_g, strictly lower triangular, describes the additions within the group, and A_h, from the
// masks of group g - h, those from h groups before. A_4 has one entry, which does not depend on a
// mask: block 7 of a group is 25 before block 0 of the fourth group after it.
//
// GF2P8AFFINEQB expects row j of a matrix in byte 7 - j of a 64-bit lane ("rows"). In its other
// operand a matrix is eight columns, bytes in any order; here column l is byte 7 - l ("columns").
#include <immintrin.h>

#include "ot/codes/expand_convolute.h"

namespace nescio::ot::avx512 {
namespace {

constexpr int kGroup = 8;
constexpr int kHistoryGroups = kHistory / kGroup;
/// Groups whose matrices are computed at a time.
constexpr std::size_t kChunk = 64;

struct alignas(64) Bytes {
  std::uint8_t at[64];
};

template <class Source>
constexpr Bytes make_bytes(Source source) {
  Bytes bytes{};
  for (int i = 0; i < 64; ++i) bytes.at[i] = static_cast<std::uint8_t>(source(i / 8, i % 8));
  return bytes;
}

/// Selects byte 8 half + b of block e for byte 7 - e of lane b.
template <int half>
constexpr Bytes kToLanes = make_bytes([](int b, int k) { return 16 * (7 - k) + 8 * half + b; });
/// Selects byte e of lane b for byte b of block e, for the four blocks from 4 half on.
template <int half>
constexpr Bytes kToBlocks = make_bytes([](int lane, int k) {
  const int byte = 8 * (lane % 2) + k, block = 4 * half + lane / 2;
  return 8 * byte + block;
});
/// Selects byte h of lane l for byte 7 - l of lane h.
constexpr Bytes kColumns = make_bytes([](int h, int k) { return 8 * (7 - k) + h; });

inline __m512i load(const Bytes& bytes) { return _mm512_load_si512(bytes.at); }

/// Two registers of transposed blocks: bit positions 0..63 and 64..127.
struct Group {
  __m512i half[2];
};

struct Transposer {
  __m512i to_lanes[2] = {load(kToLanes<0>), load(kToLanes<1>)};
  __m512i to_blocks[2] = {load(kToBlocks<0>), load(kToBlocks<1>)};
  __m512i rising = _mm512_set1_epi64(static_cast<long long>(0x8040201008040201ull));
  __m512i falling = _mm512_set1_epi64(0x0102040810204080ll);
};

inline Group transpose(const Transposer& t, const Block* y) {
  const __m512i a = _mm512_loadu_si512(y), b = _mm512_loadu_si512(y + 4);
  Group g;
  for (int h = 0; h < 2; ++h) {
    const __m512i lanes = _mm512_permutex2var_epi8(a, t.to_lanes[h], b);
    g.half[h] = _mm512_gf2p8affine_epi64_epi8(t.falling, lanes, 0);
  }
  return g;
}

inline void transpose_back(const Transposer& t, Group g, Block* y) {
  for (int h = 0; h < 2; ++h) {
    g.half[h] = _mm512_gf2p8affine_epi64_epi8(t.rising, g.half[h], 0);
  }
  for (int h = 0; h < 2; ++h) {
    _mm512_storeu_si512(y + 4 * h, _mm512_permutex2var_epi8(g.half[0], t.to_blocks[h], g.half[1]));
  }
}

/// The matrices of one group's masks, as rows: (I + L)^-1, A_1, A_2, A_3.
struct alignas(64) Matrices {
  std::uint64_t inverse, to_next[7];
};

inline __m512i rows_of(const Transposer& t, __m512i columns) {
  return _mm512_gf2p8affine_epi64_epi8(t.falling, columns, 0);
}

/// (I + L)^-1 = (I + L^4) (I + L^2) (I + L), because L^8 = 0. Only lane 0 of the result is used.
inline __m512i inverse_rows(const Transposer& t, __m512i columns, __m512i rows) {
  const __m512i columns2 = _mm512_gf2p8affine_epi64_epi8(columns, rows, 0);
  const __m512i rows2 = rows_of(t, columns2);
  const __m512i rows4 = rows_of(t, _mm512_gf2p8affine_epi64_epi8(columns2, rows2, 0));
  __m512i product = _mm512_xor_si512(columns, t.falling);
  product = _mm512_xor_si512(product, _mm512_gf2p8affine_epi64_epi8(product, rows2, 0));
  product = _mm512_xor_si512(product, _mm512_gf2p8affine_epi64_epi8(product, rows4, 0));
  return rows_of(t, product);
}

/// Block l is added to block l + 1 + j if bit j of its mask is set. Byte h of the mask shifted by
/// l + 1 describes the additions to the blocks h groups later: it is column l of A_h.
inline void make_matrices(const Transposer& t, const std::uint32_t* masks, Matrices* out) {
  const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(masks));
  const __m512i low = _mm512_and_si512(_mm512_cvtepu32_epi64(words), _mm512_set1_epi64(0xFFFFFF));
  const __m512i shifted = _mm512_sllv_epi64(_mm512_or_si512(low, _mm512_set1_epi64(0x1000000)),
                                            _mm512_set_epi64(8, 7, 6, 5, 4, 3, 2, 1));
  const __m512i columns = _mm512_permutexvar_epi8(load(kColumns), shifted);
  const __m512i rows = rows_of(t, columns);
  _mm512_store_si512(out, _mm512_mask_mov_epi64(rows, 1, inverse_rows(t, columns, rows)));
}

inline __m512i multiply(std::uint64_t rows, __m512i x) {
  return _mm512_gf2p8affine_epi64_epi8(x, _mm512_set1_epi64(static_cast<long long>(rows)), 0);
}

/// Computes z_g from r_g. at[-h] are the matrices, z[h - 1] the results of h groups before.
inline Group convolve_group(const Matrices* at, Group r, const Group* z) {
  constexpr std::uint64_t kLastToFirst = 0x8000000000000000ull;
  for (int k = 0; k < 2; ++k) {
    const __m512i far = _mm512_xor_si512(multiply(at[-3].to_next[2], z[2].half[k]),
                                         multiply(kLastToFirst, z[3].half[k]));
    const __m512i near =
        _mm512_ternarylogic_epi64(r.half[k], far, multiply(at[-2].to_next[1], z[1].half[k]), 0x96);
    const __m512i sum = _mm512_xor_si512(near, multiply(at[-1].to_next[0], z[0].half[k]));
    r.half[k] = multiply(at->inverse, sum);
  }
  return r;
}

}  // namespace

void convolve(const std::uint32_t* masks, const Block* before, Block* y, std::size_t count) {
  const Transposer t;
  Matrices matrices[kHistoryGroups + kChunk];
  Group z[kHistoryGroups];
  for (int h = 0; h < kHistoryGroups; ++h)
    z[h] = transpose(t, before + kGroup * (kHistoryGroups - 1 - h));
  const std::size_t groups = count / kGroup;
  for (std::size_t first = 0; first < groups; first += kChunk) {
    const std::size_t chunk = groups - first < kChunk ? groups - first : kChunk;
    for (std::size_t g = 0; g < kHistoryGroups + chunk; ++g) {
      make_matrices(t, masks + kGroup * (first + g) - kHistory, &matrices[g]);
    }
    for (std::size_t g = 0; g < chunk; ++g) {
      Block* group = y + kGroup * (first + g);
      const Group done = convolve_group(&matrices[kHistoryGroups + g], transpose(t, group), z);
      transpose_back(t, done, group);
      z[3] = z[2];
      z[2] = z[1];
      z[1] = z[0];
      z[0] = done;
    }
  }
  const std::size_t done = groups * kGroup, rest = count - done;
  if (rest == 0) return;
  Block last[kHistory];
  for (std::size_t i = 0; i < kHistory; ++i) {
    last[i] = done + i < kHistory ? before[done + i] : y[done + i - kHistory];
  }
  portable::convolve(masks + done, last, y + done, rest);
}

}  // namespace nescio::ot::avx512
