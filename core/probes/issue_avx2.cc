// Compiled for AVX2. Must not define functions that other tiers share (scripts/check_tiers.py).
#include "probes/issue.h"
#include "probes/issue_impl.h"

namespace nescio::probes::avx2 {
namespace {

template <class Step>
[[gnu::always_inline]] inline void repeat_step(std::size_t rounds, Step step) {
  const __m256i other = _mm256_set1_epi64x(0x0123456789ABCDEF);
  repeat(rounds, _mm256_set1_epi8(3), [&](__m256i x) { return step(x, other); });
}

void bit(std::size_t rounds) {
  repeat_step(rounds, [](__m256i x, __m256i y) { return _mm256_shuffle_epi8(y, x); });
}
void u8(std::size_t rounds) {
  repeat_step(rounds, [](__m256i x, __m256i y) { return _mm256_mullo_epi16(x, y); });
}
void u32(std::size_t rounds) {
  repeat_step(rounds, [](__m256i x, __m256i y) { return _mm256_mullo_epi32(x, y); });
}
void aes(std::size_t rounds) {
  const __m128i other = _mm_set1_epi64x(0x0123456789ABCDEF);
  repeat(rounds, _mm_set1_epi8(3), [&](__m128i x) { return _mm_aesenc_si128(x, other); });
}
void words(std::size_t rounds) {
  repeat_step(rounds, [](__m256i x, __m256i y) {
    x = _mm256_xor_si256(_mm256_add_epi32(x, y), y);
    asm volatile("" : "+v"(x));
    return _mm256_or_si256(_mm256_slli_epi32(x, 7), _mm256_srli_epi32(x, 25));
  });
}

constexpr Loop kLoops[] = {{32, bit}, {32, u8}, {32, u32}, {}, {16, aes}, {32, words}};

}  // namespace

Loop issue_loop(Instruction instruction) { return kLoops[static_cast<std::size_t>(instruction)]; }

}  // namespace nescio::probes::avx2
