#pragma once

// The interface between a GPU kernel of Nescio and the machine that runs it, so that the same source
// runs on a GPU and, slowly but exactly, on the CPU.
//
// A kernel is a struct of plain arguments, which the concept Kernel describes. Every thread of a grid
// calls its
//
//     template <ThreadBlock B> NESCIO_DEVICE void operator()(B& block) const;
//
// where `block` is the thread's view of its block (the concept ThreadBlock):
//
//     x(), y()                  the block's position in the grid
//     thread(), warp(), lane()  the thread's index in the block, its warp, and its index in the warp
//     shared()                  the block's shared memory, aligned to 16 bytes
//     sync()                    barrier for all threads of the block
//     shuffle_xor(v, mask)      the value of v in lane ^ mask
//     ballot(bit)               bit l is the value in lane l
//     load_words(out, quad)     out[i] is word lane % 4 of the quad that lane 8 i + lane / 4 names
//     multiply_bits(c, a, b)    the matrix instruction m16n8k256 on bits: AND, then population count
//     multiply_bytes(c, a, b)   the matrix instruction m16n8k32 on unsigned bytes, sums mod 2^32
//     dot_bytes(a, b, c)        c + the products of four pairs of unsigned bytes
//     count_ones(x)             population count of a word
//     multiply_add(a, b, c)     a b + c in single or double precision, rounded once
//     atomic_add(p, v)          *p += v
//     atomic_xor(p, v)          *p ^= v
//     copy_async(to, from)      16 bytes from global to shared memory, in the background
//     commit_copies()           ends a group of such copies
//     wait_copies<n>()          waits for all of this thread's groups but the newest n
//
// CudaBlock (gpu/cuda/block.h) maps each function to the instruction of that name. EmulatedBlock
// (gpu/emulated/block.h) computes its documented result, and refuses what is undefined on a GPU: a
// barrier that some threads do not reach, lanes of a warp at different instructions, and a read of an
// asynchronous copy before the wait (the copy has not happened yet).
//
// Warp-wide functions are called by all lanes of a warp.
//
// The matrix instructions are collective: lane l = 4g + t of a warp holds, of C = C + A x B,
//
//     a[0], a[2]   row g of A,      words t and 4 + t      (a word is 32 bits of the 32 bytes that
//     a[1], a[3]   row g + 8 of A,  words t and 4 + t       a row of A or a column of B has)
//     b[0], b[1]   column g of B,   words t and 4 + t
//     c[0], c[1]   row g of C,      columns 2t and 2t + 1
//     c[2], c[3]   row g + 8 of C,  columns 2t and 2t + 1
//
// (PTX ISA 9.0, sections 9.7.14.5.10 and 9.7.14.5.13).

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/block.h"
#include "base/math.h"

namespace nescio::gpu {

inline constexpr unsigned kWarp = 32;

/// Sixteen bytes that one instruction loads or stores.
struct alignas(16) Quad {
  std::uint32_t w[4];
};

/// The number of blocks of a grid, or the position of one.
struct Grid {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
};

/// A thread's view of its block, as described at the top of this file.
template <class B>
concept ThreadBlock =
    requires(B& block, const Quad* quad, void* to, const void* from, bool bit, std::uint32_t word,
             std::uint32_t* words, std::uint64_t* longs, std::uint32_t (&c)[4],
             const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
      { block.x() } -> std::same_as<std::uint32_t>;
      { block.y() } -> std::same_as<std::uint32_t>;
      { block.thread() } -> std::same_as<unsigned>;
      { block.warp() } -> std::same_as<unsigned>;
      { block.lane() } -> std::same_as<unsigned>;
      { block.shared() } -> std::same_as<std::byte*>;
      block.sync();
      { block.shuffle_xor(word, 1u) } -> std::same_as<std::uint32_t>;
      { block.ballot(bit) } -> std::same_as<std::uint32_t>;
      block.load_words(c, quad);
      block.multiply_bits(c, a, b);
      block.multiply_bytes(c, a, b);
      { B::dot_bytes(word, word, word) } -> std::same_as<std::uint32_t>;
      { B::count_ones(word) } -> std::same_as<std::uint32_t>;
      { B::multiply_add(1.0, 1.0, 1.0) } -> std::same_as<double>;
      { B::multiply_add(1.0f, 1.0f, 1.0f) } -> std::same_as<float>;
      B::atomic_add(words, word);
      B::atomic_add(longs, std::uint64_t{1});
      B::atomic_xor(words, word);
      block.copy_async(to, from);
      block.commit_copies();
      block.template wait_copies<1>();
    };

/// A struct that a device can launch:
///
///     kThreads        threads of a block, a multiple of 32
///     kCooperative    true if threads of a block share memory, barriers or warp-wide functions
///     shared_bytes()  bytes of shared memory of a block; only if kCooperative
///     kMinBlocks      blocks that one processor holds at once, at least; optional
template <class K>
concept Kernel = std::is_trivially_copyable_v<K> && K::kThreads % kWarp == 0 &&
                 std::same_as<decltype(K::kCooperative), const bool> &&
                 (!K::kCooperative || requires(const K& kernel) {
                   { kernel.shared_bytes() } -> std::convertible_to<std::size_t>;
                 });

}  // namespace nescio::gpu
