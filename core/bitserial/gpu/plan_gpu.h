#pragma once

// Which kernel makes a product on a GPU: what there is to choose, and the choices, in one place.
// They are computed, not measured: see docs/quant-gpu.md.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "bitserial/gpu/tiles_gpu.h"
#include "gpu/device.h"

namespace nescio::bitserial {

/// What is done, by its name.
struct GpuKernel {
  std::string_view name;
  bool matrix;  ///< by matrix instructions, or by AND and population count
  bool fused;   ///< in one kernel with making integers of the vectors and planes of these
};

inline constexpr std::array<GpuKernel, 4> kGpuKernels = {{{"count", false, false},
                                                          {"count-fused", false, true},
                                                          {"matrix", true, false},
                                                          {"matrix-fused", true, true}}};

struct GpuPlan {
  /// Tiles of a slice at most: registers for their sums.
  static constexpr std::uint32_t kMostCounted = 4, kMostMatrix = 8;

  /// Floats that every block of a fused kernel makes integers of, at most: more take longer than the
  /// second kernel, a microsecond and a half.
  static constexpr std::uint64_t kFusedFloats = 8192;
  /// Bytes of their tiles at most: two blocks a processor have room.
  static constexpr std::size_t kFusedBytes = 32 << 10;

  /// Vectors of a batch at most: the y of a grid.
  static constexpr std::uint32_t kMostBatch = 65535;

  GpuKernel kernel;
  std::uint32_t slice_tiles;

  /// `name` is that of a kernel, or empty for the one that is thought best. Throws Error(argument) for
  /// one that the card has not, or whose vectors do not fit.
  GpuPlan(const gpu::DeviceInfo& device, std::uint32_t columns, std::uint32_t activation_bits,
          std::uint32_t batch, std::string_view name) {
    kernel = name.empty() ? choose(device, columns, activation_bits, batch) : named(device, name);
    slice_tiles = slice(kernel, activation_bits, batch);
    if (kernel.fused && tile_bytes(columns, slice_tiles) > kFusedBytes) {
      throw Error(ErrorKind::argument, "a fused kernel: found " + std::to_string(columns) +
                                           " columns, expected at most " +
                                           std::to_string(most_columns(slice_tiles)));
    }
  }

  /// Whether doubles take half the time of single floats, and not 1/32 or less: the cards of data
  /// centres but for Turing's and Ada's.
  static bool fast_doubles(const gpu::DeviceInfo& device) {
    return device.capability == 80 || device.capability == 90 || device.capability == 100;
  }
  /// Whether matrix instructions AND bits.
  static bool has_matrix(const gpu::DeviceInfo& device) { return device.capability >= 80; }

  /// Blocks that make tiles of one vector when that is not fused: few enough that their second reading
  /// of it, for its largest magnitude, is not felt.
  static std::uint32_t vector_blocks(const gpu::DeviceInfo& device, std::uint32_t columns,
                                     std::uint32_t batch) {
    const std::uint32_t wanted = static_cast<std::uint32_t>(ceil_div(columns, kChunkColumns));
    return std::clamp(2 * device.processors / batch, 1u, std::max(1u, wanted));
  }

  static std::size_t tile_bytes(std::uint32_t columns, std::uint32_t tiles) {
    return ceil_div(columns, kChunkColumns) * tiles * gpu::kWarp * sizeof(Pair);
  }

 private:
  static GpuKernel choose(const gpu::DeviceInfo& device, std::uint32_t columns,
                          std::uint32_t activation_bits, std::uint32_t batch) {
    const bool matrix = has_matrix(device);
    GpuKernel kernel = kGpuKernels[matrix ? 3 : 1];
    const std::uint32_t tiles = slice(kernel, activation_bits, batch);
    const std::uint64_t floats = std::uint64_t{tiles * kTilePlanes / activation_bits} * columns;
    const bool fused =
        fast_doubles(device) && floats <= kFusedFloats && tile_bytes(columns, tiles) <= kFusedBytes;
    return fused ? kernel : kGpuKernels[matrix ? 2 : 0];
  }

  static GpuKernel named(const gpu::DeviceInfo& device, std::string_view name) {
    std::string names;
    for (const GpuKernel& kernel : kGpuKernels) {
      if (kernel.matrix && !has_matrix(device)) continue;
      if (kernel.name == name) return kernel;
      names += (names.empty() ? "" : ", ") + std::string(kernel.name);
    }
    throw Error(ErrorKind::argument, "there is no kernel '" + std::string(name) + "' on " +
                                         device.name + "; there are: " + names);
  }

  static std::uint32_t slice(const GpuKernel& kernel, std::uint32_t activation_bits,
                             std::uint32_t batch) {
    const std::uint64_t tiles = std::uint64_t{batch} * (activation_bits / kTilePlanes);
    const std::uint64_t most = kernel.matrix ? kMostMatrix : kMostCounted;
    return static_cast<std::uint32_t>(std::bit_ceil(std::min(tiles, most)));
  }

  static std::size_t most_columns(std::uint32_t tiles) {
    return kFusedBytes / (tiles * gpu::kWarp * sizeof(Pair)) * kChunkColumns;
  }
};

}  // namespace nescio::bitserial
