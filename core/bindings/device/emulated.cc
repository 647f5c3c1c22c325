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
  m.def("begin_capture", &nescio::gpu::EmulatedDevice::begin_capture,
        "Makes allocations, releases and waits errors, as in the capture of a CUDA graph.");
  m.def("end_capture", &nescio::gpu::EmulatedDevice::end_capture,
        "Ends begin_capture; raises if memory was released since.");
}
