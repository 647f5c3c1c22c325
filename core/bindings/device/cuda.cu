#include "bindings/device/bitserial.h"
#include "bindings/device/ot.h"
#include "bindings/device/pir.h"
#include "gpu/cuda/device.h"

NB_MODULE(_cuda, m) {
  m.doc() =
      "Tables, transfers and products on NVIDIA GPUs. Private: use the package's public modules.";
  nescio::bindings::bind_pir_device<nescio::gpu::CudaDevice>(m);
  nescio::bindings::bind_ot_device<nescio::gpu::CudaDevice>(m);
  nescio::bindings::bind_bitserial_device<nescio::gpu::CudaDevice>(m);
}
