#pragma once

// What a GPU kernel of Nescio is written against, so that the same source runs on a card and, slowly
// but exactly, on a processor.
//
// A kernel is a struct of plain arguments with a function
//
//     template <class B> NESCIO_DEVICE void operator()(B& block) const;
//
// that every thread of a grid runs, and with
//
//     static constexpr unsigned kThreads;    threads of a block, a multiple of 32
//     static constexpr bool kCooperative;    true if threads of a block communicate
//     static constexpr unsigned kMinBlocks;  blocks that a multiprocessor must hold at once; optional
//     std::size_t shared_bytes() const;      bytes of shared memory; only if kCooperative
//
// `block` is the thread's view of its block:
//
//     x(), y()                  the block's place in the grid
//     thread(), warp(), lane()  the thread's place in the block, its warp, and its place there
//     shared()                  the block's shared memory, on a boundary of 16 bytes
//     sync()                    every thread of the block waits for all others
//     shuffle_xor(v, mask)      the value of v in lane ^ mask
//     ballot(bit)               bit l is the value in lane l
//     load_words(out, quad)     out[i] is word lane % 4 of the quad that lane 8 i + lane / 4 names
//     multiply_bits(c, a, b)    the matrix instruction m16n8k256 on bits: AND, then the count of ones
//     multiply_bytes(c, a, b)   the matrix instruction m16n8k32 on unsigned bytes, sums mod 2^32
//     dot_bytes(a, b, c)        c + the products of four pairs of unsigned bytes
//     count_ones(x)             of the bits of a word
//     multiply_add(a, b, c)     a b + c in double precision, rounded once
//     add(p, v)                 *p += v, atomically
//     atomic_xor(p, v)          *p ^= v, atomically
//     copy_async(to, from)      16 bytes from global to shared memory, in the background
//     commit_copies()           ends a group of such copies
//     wait_copies<n>()          waits for all of this thread's groups but the newest n
//
// CudaBlock (gpu/cuda/block.h) maps each to the instruction of that name; EmulatedBlock (gpu/emulated/block.h) gives
// them their documented meaning and refuses what would be undefined on a card: a barrier that some
// threads do not reach, lanes of a warp at different instructions, a copy that is read before it was
// waited for (it has not happened yet).
//
// What a warp does together it does with all of its lanes.
//
// The matrix instructions are collective: lane l = 4g + t of a warp holds, of C = C + A x B,
//
//     a[0], a[2]   row g of A,      words t and 4 + t      (a word is 32 bits of the 32 bytes that
//     a[1], a[3]   row g + 8 of A,  words t and 4 + t       a row of A or a column of B has)
//     b[0], b[1]   column g of B,   words t and 4 + t
//     c[0], c[1]   row g of C,      columns 2t and 2t + 1
//     c[2], c[3]   row g + 8 of C,  columns 2t and 2t + 1
//
// (PTX ISA 9.0, sections 9.7.14.5.11 and 9.7.14.5.13).

#include <cstddef>
#include <cstdint>

#include "base/block.h"
#include "base/math.h"

namespace nescio::gpu {

inline constexpr unsigned kWarp = 32;

/// Sixteen bytes that travel in one instruction.
struct alignas(16) Quad {
  std::uint32_t w[4];
};

/// The blocks of a grid.
struct Grid {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
};

}  // namespace nescio::gpu
