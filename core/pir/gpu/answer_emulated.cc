// The kernels' own source on the processor, for tests.

#include "gpu/emulated/device.h"
#include "pir/gpu/answer_gpu_impl.h"

namespace nescio::pir {

template class GpuTable<gpu::EmulatedDevice>;

}  // namespace nescio::pir
