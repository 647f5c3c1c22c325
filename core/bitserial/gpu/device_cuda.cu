#include "bitserial/gpu/device_gpu_impl.h"
#include "gpu/cuda/device.h"

namespace nescio::bitserial {

template class DeviceBitMatrix<gpu::CudaDevice>;
template class DeviceBitProduct<gpu::CudaDevice>;

}  // namespace nescio::bitserial
