#include "bindings/bindings.h"
#include "bindings/errors.h"

NB_MODULE(_core, m) {
  using namespace nescio::bindings;
  m.doc() = "The engine of Nescio. Private: use the package's public modules.";
  nb::set_leak_warnings(false);  // pools may outlive the interpreter, which is not a leak
  translate_errors();
  bind_base(m);
  bind_batch(m);
  bind_prg(m);
  bind_hash(m);
  bind_dpf(m);
  bind_pir(m);
  bind_keyed(m);
  bind_lut(m);
  bind_ot(m);
  bind_ot_codes(m);
  bind_bitserial(m);
  bind_rlwe(m);
  bind_probes(m);
}
