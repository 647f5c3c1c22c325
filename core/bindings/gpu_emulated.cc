#include "bindings/bitserial_gpu.h"
#include "bindings/gpu.h"
#include "bindings/ot_gpu.h"
#include "gpu/host_device.h"

NB_MODULE(_emulated, m) {
  m.doc() =
      "The kernels of `_cuda` on the processor, for tests. Private: use the package's modules.";
  nescio::bindings::bind_gpu<nescio::gpu::HostDevice>(m);
  nescio::bindings::bind_ot_gpu<nescio::gpu::HostDevice>(m);
  nescio::bindings::bind_bitserial_gpu<nescio::gpu::HostDevice>(m);
}
