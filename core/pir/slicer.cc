#include "pir/slicer_impl.h"

namespace nescio::pir::portable {
namespace {

void set_row(std::uint64_t word, std::size_t row, std::uint8_t* line) {
  for (std::size_t byte = 0; byte < kBlockColumnBytes; ++byte) {
    std::uint64_t columns;
    std::memcpy(&columns, line + byte * 8, sizeof(columns));
    const std::uint64_t bits = transpose_bits(word >> 8 * byte & 0xFF) << row;
    columns = (columns & ~(0x0101010101010101ull << row)) | bits;
    std::memcpy(line + byte * 8, &columns, sizeof(columns));
  }
}

std::uint64_t get_row(const std::uint8_t* line, std::size_t row) {
  std::uint64_t word = 0;
  for (std::size_t byte = 0; byte < kBlockColumnBytes; ++byte) {
    std::uint64_t columns;
    std::memcpy(&columns, line + byte * 8, sizeof(columns));
    word |= std::uint64_t{pack_bits(columns >> row)} << 8 * byte;
  }
  return word;
}

}  // namespace

const Slicer kSlicer = {slice_words_of, unslice_words_of, read_lines<get_row>,
                        overwrite_lines<set_row>};

}  // namespace nescio::pir::portable
