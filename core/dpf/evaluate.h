#pragma once

#include <cstdint>
#include <span>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "dpf/key.h"

namespace nescio::dpf {

/// Returns the bytes of the shares of `count` points: packed bits, or whole words.
std::size_t share_bytes(Output output, std::uint64_t count);

/// Throws Error(index) if the range is outside the domain, Error(argument) if packed bits cannot begin
/// at `start`.
void check_range(const Shape& shape, std::uint64_t start, std::uint64_t stop);

/// Writes the shares of key i at the points start..stop-1 to out + i * share_bytes(output, stop-start).
///
/// Bits are packed, the lowest bit of a byte first; `start` must then be a multiple of 8, and unused
/// bits of the last byte are zero. Uses O(threads x depth) memory besides the output.
/// Throws as check_range does.
void evaluate_range(const Keys& keys, std::uint64_t start, std::uint64_t stop, std::uint8_t* out,
                    ThreadPool& pool, Tier tier);

/// Writes the share of key i at points[i * per_key + k], one element (a byte for a bit), to
/// out + (i * per_key + k) * element size. Throws Error(index) for a point outside the domain.
void evaluate_points(const Keys& keys, std::span<const std::uint64_t> points, std::uint8_t* out,
                     ThreadPool& pool, Tier tier);

}  // namespace nescio::dpf
