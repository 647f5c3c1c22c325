#include "bindings/device/bitserial.h"
#include "bindings/device/ot.h"
#include "bindings/device/pir.h"
#include "gpu/emulated/device.h"

NB_MODULE(_emulated, m) {
  m.doc() =
      "The kernels of `_cuda` on the CPU, for tests. Private: use the package's public modules.";
  nescio::bindings::bind_pir_device<nescio::gpu::EmulatedDevice>(m);
  nescio::bindings::bind_ot_device<nescio::gpu::EmulatedDevice>(m);
  nescio::bindings::bind_bitserial_device<nescio::gpu::EmulatedDevice>(m);
  m.def("begin_capture", &nescio::gpu::EmulatedDevice::begin_capture,
        "Make allocations, releases and waits fail, as in the capture of a CUDA graph.");
  m.def("end_capture", &nescio::gpu::EmulatedDevice::end_capture,
        "End begin_capture; raise if memory was released since.");
}
