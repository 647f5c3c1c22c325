#pragma once

// The keys of ot/keys.h on a GPU. Round keys are stored in device memory; threads that hash under
// the same key read the same words.

#include "ot/gpu/threads_gpu.h"
#include "ot/keys.h"

namespace nescio::ot {

/// Expands public keys (FIPS 197, section 5.2), one thread per key. Key i is
/// base ^ (first + ((i / run) << shift) + i % run).
struct ExpandKeys : PlainKernel {
  const std::uint32_t* table;  ///< prg::aes_table(), whose second byte is the S-box
  Block base;
  std::uint64_t first;
  unsigned run;
  unsigned shift;
  prg::AesColumns* keys;

  template <gpu::ThreadBlock B>
  NESCIO_DEVICE void operator()(B& block) const {
    const std::uint64_t i = item(block);
    if (i >= items) return;
    const Block key = base ^ Block{first + ((i / run) << shift) + i % run, 0};
    std::uint32_t words[4];
    NESCIO_UNROLL
    for (unsigned k = 0; k < 4; ++k) words[k] = word_of(key, k);
    std::uint32_t constant = 1;
    for (unsigned round = 0; round <= 10; ++round) {
      keys[i][round] = {{words[0], words[1], words[2], words[3]}};
      words[0] ^= substituted(words[3]) ^ constant;
      NESCIO_UNROLL
      for (unsigned k = 1; k < 4; ++k) words[k] ^= words[k - 1];
      constant = (constant << 1) ^ ((constant >> 7) * 0x11B);
    }
  }

 private:
  /// SubWord(RotWord(word)), where the first byte is the lowest.
  NESCIO_DEVICE std::uint32_t substituted(std::uint32_t word) const {
    const std::uint32_t rotated = word >> 8 | word << 24;
    std::uint32_t out = 0;
    NESCIO_UNROLL
    for (unsigned byte = 0; byte < 32; byte += 8) {
      out |= ((table[(rotated >> byte) & 0xFF] >> 8) & 0xFF) << byte;
    }
    return out;
  }
};

}  // namespace nescio::ot
