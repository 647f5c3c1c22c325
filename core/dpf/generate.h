#pragma once

#include <cstdint>
#include <span>

#include "base/block.h"
#include "base/cpu.h"
#include "dpf/key.h"

namespace nescio::dpf {

/// Gen of Boyle, Gilboa and Ishai 2016, Figure 1, for many points at once.
///
/// Writes the two keys of the point function that is payloads[i] at alphas[i] to
/// keys0 + i * shape.key_bytes() and keys1 + i * shape.key_bytes(). One key alone is computationally
/// independent of both point and payload. Seeds come from the operating system. The time depends only
/// on the shape and the number of points.
///
/// Throws Error(argument) for an invalid shape, Error(index) for a point outside the domain.
void generate(const Shape& shape, std::span<const std::uint64_t> alphas,
              std::span<const Block> payloads, std::uint8_t* keys0, std::uint8_t* keys1, Tier tier);

/// The same with the parties' root seeds given, for test vectors: roots[2i] and roots[2i + 1], the
/// lowest bit of each is overwritten by the party. A guessed seed reveals the point.
void insecure_generate(const Shape& shape, std::span<const std::uint64_t> alphas,
                       std::span<const Block> payloads, std::span<const Block> roots,
                       std::uint8_t* keys0, std::uint8_t* keys1, Tier tier);

}  // namespace nescio::dpf
