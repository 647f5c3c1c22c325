// Compiled for AVX2. Includes nothing that could leave shared code behind.
//
// Four blocks at a time. A table holds the sixteen XORs of subsets of them. What they add to a
// later block is one entry, whose index consists of four mask bits; masks are public, so that they
// may be used as an index. Let v_l be the mask of block l with the bit for the block 25 after it,
// shifted by l. Then the bits e of v_0 to v_3 select what is added to the block 1 + e after block
// 0.
#include <immintrin.h>

#include "ot/codes/expand_convolute.h"

namespace nescio::ot::avx2 {
namespace {

constexpr std::size_t kGroup = 4;
constexpr std::size_t kHistoryGroups = kHistory / kGroup;

/// The sums of four blocks, and the byte offsets of the sums that are added to later blocks:
/// offset[e] is for the block 1 + e after the first of the four.
struct alignas(32) Group {
  __m128i sums[16];
  std::uint8_t offset[32];

  __m128i sum_for(std::size_t e) const {
    const auto* from = reinterpret_cast<const std::uint8_t*>(sums) + offset[e];
    return _mm_load_si128(reinterpret_cast<const __m128i*>(from));
  }
};

inline __m128i load(const Block* block) {
  return _mm_load_si128(reinterpret_cast<const __m128i*>(block));
}

/// Sets bit 4 + l of byte e if bit e of v_l is set: the offset of a table entry of 16 bytes.
inline void make_offsets(const std::uint32_t* masks, std::uint8_t* offset) {
  const __m256i spread =
      _mm256_set_epi64x(0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0);
  const __m256i bit = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201));
  __m256i offsets = _mm256_setzero_si256();
#pragma GCC unroll 4
  for (int l = 0; l < 4; ++l) {
    const std::uint32_t v = ((masks[l] & 0xFFFFFF) | 0x1000000) << l;
    const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int>(v)), spread);
    const __m256i is_set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
    const __m256i place = _mm256_set1_epi8(static_cast<char>(0x10 << l));
    offsets = _mm256_or_si256(offsets, _mm256_and_si256(is_set, place));
  }
  _mm256_store_si256(reinterpret_cast<__m256i*>(offset), offsets);
}

/// Extends the table of sums by block l, whose convolution is finished.
inline void extend_sums(Group& group, std::size_t l, __m128i block) {
  const std::size_t count = std::size_t{1} << l;
  for (std::size_t i = 0; i < count; ++i) {
    group.sums[count + i] = _mm_xor_si128(group.sums[i], block);
  }
}

/// Convolves four blocks. `groups[current]` holds the offsets for their masks.
inline void convolve_group(Group* groups, std::size_t current, Block* y) {
  __m128i x[kGroup];
#pragma GCC unroll 4
  for (std::size_t j = 0; j < kGroup; ++j) {
    x[j] = load(y + j);
#pragma GCC unroll 6
    for (std::size_t h = 6; h >= 1; --h) {
      x[j] =
          _mm_xor_si128(x[j], groups[(current - h) % kHistoryGroups].sum_for(kGroup * h + j - 1));
    }
  }
  x[0] = _mm_xor_si128(x[0], groups[(current - 7) % kHistoryGroups].sums[8]);
  Group& group = groups[current % kHistoryGroups];
#pragma GCC unroll 4
  for (std::size_t j = 0; j < kGroup; ++j) {
    if (j > 0) x[j] = _mm_xor_si128(x[j], group.sum_for(j - 1));
    extend_sums(group, j, x[j]);
    _mm_store_si128(reinterpret_cast<__m128i*>(y + j), x[j]);
  }
}

}  // namespace

void convolve(const std::uint32_t* masks, const Block* before, Block* y, std::size_t count) {
  Group groups[kHistoryGroups];
  for (std::size_t g = 0; g < kHistoryGroups; ++g) {
    make_offsets(masks + kGroup * g - kHistory, groups[g].offset);
    groups[g].sums[0] = _mm_setzero_si128();
    for (std::size_t l = 0; l < kGroup; ++l)
      extend_sums(groups[g], l, load(before + kGroup * g + l));
  }
  const std::size_t done = count / kGroup * kGroup, rest = count - done;
  for (std::size_t at = 0; at < done; at += kGroup) {
    const std::size_t current = kHistoryGroups + at / kGroup;
    make_offsets(masks + at, groups[current % kHistoryGroups].offset);
    convolve_group(groups, current, y + at);
  }
  if (rest == 0) return;
  Block last[kHistory];
  for (std::size_t i = 0; i < kHistory; ++i) {
    last[i] = done + i < kHistory ? before[done + i] : y[done + i - kHistory];
  }
  portable::convolve(masks + done, last, y + done, rest);
}

}  // namespace nescio::ot::avx2
