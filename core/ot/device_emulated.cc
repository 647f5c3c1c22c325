// The kernels' own source on the processor, for tests.

#include "gpu/host_device.h"
#include "ot/codes_gpu_impl.h"

namespace nescio::ot {

template class DeviceBlocks<gpu::HostDevice>;
template class OtDevice<gpu::HostDevice>;

}  // namespace nescio::ot
