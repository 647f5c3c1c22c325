#include "gpu/cuda_device.h"
#include "ot/codes_gpu_impl.h"

namespace nescio::ot {

template class DeviceBlocks<gpu::CudaDevice>;
template class OtDevice<gpu::CudaDevice>;

}  // namespace nescio::ot
