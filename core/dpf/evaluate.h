#pragma once

#include <cstdint>
#include <span>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "dpf/key.h"

namespace nescio::dpf {

/// Bytes of the shares of `count` points: packed bits, or whole words.
std::size_t share_bytes(Output output, std::uint64_t count);

/// Throws Error(index) if the range leaves the domain, Error(argument) if packed bits cannot begin at
/// `start`.
void check_range(const Shape& shape, std::uint64_t start, std::uint64_t stop);

/// Shares of the points start..stop-1 under each key, at out + i * share_bytes(output, stop-start).
///
/// Bits are packed, the lowest bit of a byte first, and `start` must be a multiple of 8 for them;
/// unused bits of the last byte are zero. Beyond the output the memory used is O(threads x depth).
/// Throws what check_range throws.
void evaluate_range(const Keys& keys, std::uint64_t start, std::uint64_t stop, std::uint8_t* out,
                    ThreadPool& pool, Tier tier);

/// Shares of points[i * per_key + k] under key i, one element each (a byte for a bit), at
/// out + (i * per_key + k) * element size. Throws Error(index) for a point outside the domain.
void evaluate_points(const Keys& keys, std::span<const std::uint64_t> points, std::uint8_t* out,
                     ThreadPool& pool, Tier tier);

}  // namespace nescio::dpf
