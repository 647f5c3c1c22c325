#pragma once

// The choice of the kernel for a product on a GPU: computed, and for one vector measured on an H200
// (docs/gpu-figures.md).

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

/// A way to compute a product.
struct GpuKernel {
  std::string_view name;
  bool matrix;  ///< uses matrix instructions; otherwise AND and population count
  bool fused;   ///< quantizes and packs the vectors in the same kernel
};

inline constexpr std::array<GpuKernel, 4> kGpuKernels = {{{"count", false, false},
                                                          {"count-fused", false, true},
                                                          {"matrix", true, false},
                                                          {"matrix-fused", true, true}}};

/// The way to compute a product with groups (group_product_gpu.h).
inline constexpr GpuKernel kGroupKernel = {"group", false, false};

struct GpuPlan {
  /// Maximum tiles of a slice, limited by the registers for their sums.
  static constexpr std::uint32_t kMaxPopcountTiles = 4, kMaxMatrixTiles = 8;

  /// Maximum columns times tiles of activations that every block of a fused kernel makes: more take
  /// longer than a second kernel launch. Measured on an H200 with 4096 columns: one tile is faster
  /// fused (4.8 and 5.2 us), two are equal (5.7), four are slower (6.9 and 6.3).
  static constexpr std::uint64_t kFusedColumns = 8192;
  /// Maximum bytes of their tiles, so that two blocks fit on a multiprocessor.
  static constexpr std::size_t kFusedBytes = 32 << 10;

  /// Maximum vectors of a batch: the limit of a grid's y dimension.
  static constexpr std::uint32_t kMaxBatch = 65535;

  GpuKernel kernel;
  std::uint32_t slice_tiles;

  /// `name` is the name of a kernel, or empty for the expected fastest; weights with groups have one
  /// kernel, which takes one vector at a time. Throws Error(argument) for a kernel that does not
  /// exist or that the GPU does not support, and for vectors too large for a fused kernel.
  GpuPlan(const gpu::DeviceInfo& device, std::uint32_t columns, std::uint32_t activation_bits,
          std::uint32_t batch, std::string_view name, bool grouped) {
    if (grouped) {
      if (!name.empty() && name != kGroupKernel.name)
        refuse(name, "group", device.name + ", for weights with groups");
      kernel = kGroupKernel;
      slice_tiles = activation_bits / kTilePlanes;
      return;
    }
    kernel = name.empty() ? choose(device, columns, activation_bits, batch) : named(device, name);
    slice_tiles = slice(kernel, activation_bits, batch);
    if (kernel.fused && tile_bytes(columns, slice_tiles) > kFusedBytes) {
      throw Error(ErrorKind::argument, "a fused kernel: found " + std::to_string(columns) +
                                           " columns, expected at most " +
                                           std::to_string(max_columns(slice_tiles)));
    }
  }

  /// True for GPUs with half as many double-precision as single-precision operations per second:
  /// data-center GPUs except those of Turing and Ada. Others have 1/32 or fewer.
  static bool fast_doubles(const gpu::DeviceInfo& device) {
    return device.capability == 80 || device.capability == 90 || device.capability == 100;
  }
  /// True for GPUs whose matrix instructions support AND of bits.
  static bool has_matrix(const gpu::DeviceInfo& device) { return device.capability >= 80; }

  /// Blocks of threads that pack one vector in a separate kernel. Each reads the whole vector for
  /// its largest magnitude; there are few enough that this does not cost measurable time.
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
    const bool fused = fast_doubles(device) && std::uint64_t{tiles} * columns <= kFusedColumns &&
                       tile_bytes(columns, tiles) <= kFusedBytes;
    return fused ? kernel : kGpuKernels[matrix ? 2 : 0];
  }

  static GpuKernel named(const gpu::DeviceInfo& device, std::string_view name) {
    std::string names;
    for (const GpuKernel& kernel : kGpuKernels) {
      if (kernel.matrix && !has_matrix(device)) continue;
      if (kernel.name == name) return kernel;
      names += (names.empty() ? "" : ", ") + std::string(kernel.name);
    }
    refuse(name, "one of " + names, device.name);
  }

  [[noreturn]] static void refuse(std::string_view name, const std::string& expected,
                                  const std::string& where) {
    throw Error(ErrorKind::argument,
                "kernel: found '" + std::string(name) + "', expected " + expected + " on " + where);
  }

  static std::uint32_t slice(const GpuKernel& kernel, std::uint32_t activation_bits,
                             std::uint32_t batch) {
    const std::uint64_t tiles = std::uint64_t{batch} * (activation_bits / kTilePlanes);
    const std::uint64_t max_tiles = kernel.matrix ? kMaxMatrixTiles : kMaxPopcountTiles;
    return static_cast<std::uint32_t>(std::bit_ceil(std::min(tiles, max_tiles)));
  }

  static std::size_t max_columns(std::uint32_t tiles) {
    return kFusedBytes / (tiles * gpu::kWarp * sizeof(Pair)) * kChunkColumns;
  }
};

}  // namespace nescio::bitserial
