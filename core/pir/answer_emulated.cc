// The kernels' own source on the processor, for tests.

#include "gpu/host_device.h"
#include "pir/answer_gpu_impl.h"

namespace nescio::pir {

template class GpuTable<gpu::HostDevice>;

}  // namespace nescio::pir
