// The kernels' own source on the processor, for tests.

#include "gpu/emulated/device.h"
#include "ot/gpu/codes_gpu_impl.h"

namespace nescio::ot {

template class DeviceBlocks<gpu::EmulatedDevice>;
template class OtDevice<gpu::EmulatedDevice>;

}  // namespace nescio::ot
