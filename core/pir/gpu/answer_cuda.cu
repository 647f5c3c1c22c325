#include "gpu/cuda/device.h"
#include "pir/gpu/answer_gpu_impl.h"

namespace nescio::pir {

template class GpuTable<gpu::CudaDevice>;

}  // namespace nescio::pir
