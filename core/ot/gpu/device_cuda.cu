#include "gpu/cuda/device.h"
#include "ot/gpu/codes_gpu_impl.h"

namespace nescio::ot {

template class DeviceBlocks<gpu::CudaDevice>;
template class OtDevice<gpu::CudaDevice>;

}  // namespace nescio::ot
