#include "gpu/cuda_device.h"
#include "pir/answer_gpu_impl.h"

namespace nescio::pir {

template class GpuTable<gpu::CudaDevice>;

}  // namespace nescio::pir
