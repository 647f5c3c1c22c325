// The kernels' own source on the processor, for tests.

#include "bitserial/device_gpu_impl.h"
#include "gpu/host_device.h"

namespace nescio::bitserial {

template class DeviceBitMatrix<gpu::HostDevice>;
template class DeviceBitProduct<gpu::HostDevice>;

}  // namespace nescio::bitserial
