// Compiled for AVX-512. Must not define functions that other tiers share (scripts/check_tiers.py).
#include "probes/issue.h"
#include "probes/issue_impl.h"

namespace nescio::probes::avx512 {
namespace {

template <class Step>
[[gnu::always_inline]] inline void repeat_step(std::size_t rounds, Step step) {
  const __m512i other = _mm512_set1_epi64(0x0123456789ABCDEF);
  repeat(rounds, _mm512_set1_epi8(3), [&](__m512i x) { return step(x, other); });
}

void bit(std::size_t rounds) {
  repeat_step(rounds, [](__m512i x, __m512i y) { return _mm512_gf2p8affine_epi64_epi8(x, y, 0); });
}
void u8(std::size_t rounds) {
  repeat_step(rounds, [](__m512i x, __m512i y) { return _mm512_dpbusd_epi32(x, y, y); });
}
void u32(std::size_t rounds) {
  repeat_step(rounds, [](__m512i x, __m512i y) { return _mm512_mullo_epi32(x, y); });
}
void u64(std::size_t rounds) {
  repeat_step(rounds, [](__m512i x, __m512i y) { return _mm512_mullo_epi64(x, y); });
}
void aes(std::size_t rounds) {
  repeat_step(rounds, [](__m512i x, __m512i y) { return _mm512_aesenc_epi128(x, y); });
}
void words(std::size_t rounds) {
  repeat_step(rounds, [](__m512i x, __m512i y) {
    x = _mm512_xor_si512(_mm512_add_epi32(x, y), y);
    asm volatile("" : "+v"(x));  // or the compiler merges the XOR with another instruction
    return _mm512_rol_epi32(x, 7);
  });
}

constexpr Loop kLoops[] = {{64, bit}, {64, u8}, {64, u32}, {64, u64}, {64, aes}, {64, words}};

}  // namespace

Loop issue_loop(Instruction instruction) { return kLoops[static_cast<std::size_t>(instruction)]; }

}  // namespace nescio::probes::avx512
