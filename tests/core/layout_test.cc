// Tests the emulated warp instructions against the tables of the PTX ISA, element by element: which
// lane holds which element of an operand, in which register and at which place in it. The kernels and
// the emulated device agree on these layouts, so only tables from elsewhere can find a common mistake.
//
// Source: PTX ISA 9.0, "Matrix Fragments for mma.m16n8k256" (section 9.7.14.5.13), "... for
// mma.m16n8k32" (9.7.14.5.10) and "Warp-level matrix load instruction: ldmatrix" (9.7.14.5.15). There,
// groupID is laneid >> 2, threadID_in_group is laneid % 4, and element i of a fragment counts from the
// lowest bits of its first register.

#include <cstdint>
#include <vector>

#include "check.h"
#include "gpu/emulated/block.h"

namespace nescio {
namespace {

struct Place {
  unsigned row, column;
};

/// An instruction's table. `bits` is the size of an element of A or B, `k` the inner dimension.
struct Table {
  unsigned bits, k;
  Place (*a)(unsigned lane, unsigned i);
  Place (*b)(unsigned lane, unsigned i);
};

// 9.7.14.5.13: A has 128 bits per lane in four registers, B has 64 in two.
const Table kBits = {
    1, 256,
    [](unsigned lane, unsigned i) -> Place {
      const unsigned group = lane >> 2, in_group = lane % 4;
      return {i < 32 || (64 <= i && i < 96) ? group : group + 8,
              i < 64 ? in_group * 32 + (i & 0x1F) : in_group * 32 + (i & 0x1F) + 128};
    },
    [](unsigned lane, unsigned i) -> Place {
      const unsigned group = lane >> 2, in_group = lane % 4;
      return {i < 32 ? in_group * 32 + (i & 0x1F) : in_group * 32 + (i & 0x1F) + 128, group};
    }};

// 9.7.14.5.10: A has 16 bytes per lane in four registers, B has 8 in two.
const Table kBytes = {8, 32,
                      [](unsigned lane, unsigned i) -> Place {
                        const unsigned group = lane >> 2, in_group = lane % 4;
                        return {i < 4 || (8 <= i && i < 12) ? group : group + 8,
                                i < 8 ? in_group * 4 + (i & 0x3) : in_group * 4 + (i & 0x3) + 16};
                      },
                      [](unsigned lane, unsigned i) -> Place {
                        const unsigned group = lane >> 2, in_group = lane % 4;
                        return {i < 4 ? in_group * 4 + (i & 0x3) : in_group * 4 + (i & 0x3) + 16,
                                group};
                      }};

/// The accumulators of both instructions: four registers of 32 bits per lane.
Place sum_place(unsigned lane, unsigned i) {
  return {i < 2 ? lane >> 2 : (lane >> 2) + 8, lane % 4 * 2 + (i & 0x1)};
}

/// The fragment of a lane: `value(row, column)` at the places of the table.
template <unsigned kRegisters, class Value>
void fill(std::uint32_t (&registers)[kRegisters], const Table& table,
          Place (*place)(unsigned, unsigned), unsigned lane, const Value& value) {
  const unsigned per_register = 32 / table.bits;
  for (std::uint32_t& word : registers) word = 0;
  for (unsigned i = 0; i < kRegisters * per_register; ++i) {
    const Place at = place(lane, i);
    registers[i / per_register] |= value(at.row, at.column) << (i % per_register * table.bits);
  }
}

/// Multiplies matrices with a single element each, A[row][k] = x and B[k][column] = y, and returns
/// C. Every other C is its own number, so that a misplaced accumulator shows.
std::vector<std::uint32_t> product(const Table& table, Place a_at, std::uint32_t x, Place b_at,
                                   std::uint32_t y) {
  std::vector<std::uint32_t> found(16 * 8);
  gpu::FiberTeam team(gpu::kWarp, 16, gpu::ThreadOrder::forwards);
  team.run({0, 0}, [&](gpu::EmulatedBlock& block) {
    const unsigned lane = block.lane();
    std::uint32_t a[4], b[2], c[4];
    fill(a, table, table.a, lane, [&](unsigned row, unsigned column) {
      return row == a_at.row && column == a_at.column ? x : 0u;
    });
    fill(b, table, table.b, lane, [&](unsigned row, unsigned column) {
      return row == b_at.row && column == b_at.column ? y : 0u;
    });
    for (unsigned i = 0; i < 4; ++i) {
      const Place at = sum_place(lane, i);
      c[i] = 1000 * (8 * at.row + at.column);
    }
    if (table.bits == 1) {
      block.multiply_bits(c, a, b);
    } else {
      block.multiply_bytes(c, a, b);
    }
    for (unsigned i = 0; i < 4; ++i) {
      const Place at = sum_place(lane, i);
      found[8 * at.row + at.column] = c[i];
    }
  });
  return found;
}

void check_product(const Table& table, Place a_at, Place b_at) {
  const std::uint32_t x = table.bits == 1 ? 1 : 251, y = table.bits == 1 ? 1 : 3;
  const auto found = product(table, a_at, x, b_at, y);
  for (unsigned i = 0; i < found.size(); ++i) {
    const bool hit = i / 8 == a_at.row && i % 8 == b_at.column && a_at.column == b_at.row;
    CHECK(found[i] == 1000 * i + (hit ? x * y : 0));
  }
}

/// Every element of A and of B, each with a partner that it meets in one sum, and one that it misses.
void test_products() {
  for (const Table* table : {&kBits, &kBytes}) {
    for (unsigned k = 0; k < table->k; ++k) {
      for (unsigned row = 0; row < 16; ++row) {
        check_product(*table, {row, k}, {k, (row + k) % 8});
      }
      check_product(*table, {k % 16, k}, {(k + 1) % table->k, k % 8});
    }
  }
}

/// Every element has one place: the tables cover A and B exactly once.
void test_tables_are_complete() {
  for (const Table* table : {&kBits, &kBytes}) {
    std::vector<unsigned> a(16 * table->k), b(8 * table->k), c(16 * 8);
    for (unsigned lane = 0; lane < gpu::kWarp; ++lane) {
      for (unsigned i = 0; i < 4 * 32 / table->bits; ++i) {
        const Place at = table->a(lane, i);
        ++a[at.row * table->k + at.column];
      }
      for (unsigned i = 0; i < 2 * 32 / table->bits; ++i) {
        const Place at = table->b(lane, i);
        ++b[at.column * table->k + at.row];
      }
      for (unsigned i = 0; i < 4; ++i) {
        const Place at = sum_place(lane, i);
        ++c[at.row * 8 + at.column];
      }
    }
    for (const auto* seen : {&a, &b, &c}) {
      for (const unsigned count : *seen) CHECK(count == 1);
    }
  }
}

/// 9.7.14.5.15, .m8n8.x4.b16: lanes 0-7 address the rows of matrix 0, lanes 8-15 those of matrix 1,
/// and so on; register i of a lane has, of row groupID of matrix i, elements 2 threadID_in_group
/// (lower half) and 2 threadID_in_group + 1.
void test_matrix_loads() {
  const auto element = [](unsigned matrix, unsigned row, unsigned column) {
    return static_cast<std::uint32_t>(matrix << 8 | row << 4 | column);
  };
  gpu::FiberTeam team(gpu::kWarp, 512, gpu::ThreadOrder::backwards);
  team.run({0, 0}, [&](gpu::EmulatedBlock& block) {
    const unsigned lane = block.lane();
    auto* rows = reinterpret_cast<std::uint16_t*>(block.shared());
    const unsigned own = (lane * 5 + 3) % 32;  // rows lie in shared memory in any order
    for (unsigned column = 0; column < 8; ++column) {
      rows[own * 8 + column] = static_cast<std::uint16_t>(element(lane / 8, lane % 8, column));
    }
    block.sync();
    std::uint32_t out[4];
    block.load_words(out, reinterpret_cast<const gpu::Quad*>(block.shared()) + own);
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned column = lane % 4 * 2;
      CHECK((out[i] & 0xFFFF) == element(i, lane >> 2, column));
      CHECK(out[i] >> 16 == element(i, lane >> 2, column + 1));
    }
  });
}

}  // namespace
}  // namespace nescio

int main() {
  using namespace nescio;
  test_tables_are_complete();
  test_products();
  test_matrix_loads();
}
