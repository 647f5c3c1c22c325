// The kernels' own source on the processor, for tests.

#include "bitserial/gpu/device_gpu_impl.h"
#include "gpu/emulated/device.h"

namespace nescio::bitserial {

template class DeviceBitMatrix<gpu::EmulatedDevice>;
template class DeviceBitProduct<gpu::EmulatedDevice>;

}  // namespace nescio::bitserial
