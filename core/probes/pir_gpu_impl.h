// The measuring functions of pir/gpu/answer_gpu.h, included once for each device.

#include <algorithm>
#include <chrono>

#include "pir/gpu/answer_gpu.h"
#include "probes/pir_gpu.h"

namespace nescio::pir {

/// Returns the shortest of several times of a kernel, each of several consecutive launches, to exclude
/// the launch overhead.
template <gpu::ComputeDevice Device>
template <gpu::Kernel Kernel>
double GpuTable<Device>::seconds(const Kernel& kernel) {
  constexpr int kTries = 3, kLaunches = Device::kMeasurementScale;
  double best = 1e9;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kLaunches; ++i) device_.launch(kernel, kernel.grid());
    device_.finish();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    best = std::min(best, taken.count() / kLaunches);
  }
  return best;
}

template <gpu::ComputeDevice Device>
double GpuTable<Device>::seconds_per_pass() {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto* sum = reinterpret_cast<std::uint32_t*>(sums_.at_least(device_, 1));
  return seconds(ReadMemory{reinterpret_cast<const gpu::Quad*>(lines_.data()),
                            table_bytes_ / sizeof(gpu::Quad), info_.processors * 8, sum});
}

template <gpu::ComputeDevice Device>
double GpuTable<Device>::products_per_second() {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto* sum = reinterpret_cast<std::uint32_t*>(sums_.at_least(device_, 1));
  const auto measure = [&](auto kernel) { return kernel.products() / seconds(kernel); };
  const std::uint32_t blocks = info_.processors * Device::kMeasurementScale,
                      rounds = 2 * Device::kMeasurementScale * Device::kMeasurementScale;
  if (table_.shape.bits() && info_.capability < 80) {
    return measure(MultiplyLinesOnly{blocks, rounds, sum});
  }
  return table_.shape.bits() ? measure(MultiplyOnly<BitOp>{blocks, rounds, sum})
                             : measure(MultiplyOnly<ByteOp>{blocks, rounds, sum});
}

template <gpu::ComputeDevice Device>
double GpuTable<Device>::calls_per_second(prg::GeneratorId generator, bool leaves) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto* sum = reinterpret_cast<std::uint32_t*>(sums_.at_least(device_, 1));
  const auto measure = [&](auto kernel) { return kernel.calls() / seconds(kernel); };
  const std::uint32_t blocks = info_.processors * 2 * Device::kMeasurementScale,
                      rounds = 8 * Device::kMeasurementScale;
  double calls = 0;
  prg::with_gpu_generator(generator, [&]<class G>() {
    calls = leaves ? measure(GenerateOnly<G, true>{tables_, blocks, rounds, sum})
                   : measure(GenerateOnly<G, false>{tables_, blocks, rounds, sum});
  });
  return calls;
}

}  // namespace nescio::pir
