#include "bindings/device/bitserial.h"
#include "bindings/device/ot.h"
#include "bindings/device/pir.h"
#include "gpu/emulated/device.h"

NB_MODULE(_emulated, m) {
  m.doc() =
      "The kernels of `_cuda` on the processor, for tests. Private: use the package's modules.";
  nescio::bindings::bind_gpu<nescio::gpu::EmulatedDevice>(m);
  nescio::bindings::bind_ot_gpu<nescio::gpu::EmulatedDevice>(m);
  nescio::bindings::bind_bitserial_gpu<nescio::gpu::EmulatedDevice>(m);
}
