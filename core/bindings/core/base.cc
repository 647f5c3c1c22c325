#include "base/cpu.h"
#include "base/random.h"
#include "base/thread_pool.h"
#include "bindings/bindings.h"

namespace nescio::bindings {

void bind_base(nb::module_& m) {
  m.def(
      "supported_tiers",
      [] {
        std::vector<std::string> names;
        for (Tier tier : supported_tiers()) names.emplace_back(tier_name(tier));
        return names;
      },
      "Return the CPU tiers that this machine supports, narrowest first.");
  m.def(
      "active_tier", [] { return std::string(tier_name(active_tier())); },
      "Return the active tier: the widest supported, or the one in NESCIO_CPU.");
  m.def(
      "check_tier", [](const std::string& name) { static_cast<void>(parse_tier(name)); },
      nb::arg("name"), "Raise ArgumentError unless this machine supports the tier.");
  m.def("available_processors", &available_processors,
        "Return the number of processors that this process may run on.");

  m.def(
      "fill_random",
      [](const nb::ndarray<std::uint8_t, nb::c_contig, nb::device::cpu, nb::ndim<1>>& out) {
        random_bytes(out.data(), out.size());
      },
      nb::arg("out").noconvert(),
      "Fill memory, which the caller can wipe, from the operating system's generator.");

  nb::class_<ThreadPool>(m, "ThreadPool", "Worker threads; 0 means one per processor.")
      .def(nb::init<unsigned>(), nb::arg("threads") = 0)
      .def_prop_ro("threads", &ThreadPool::threads);
}

}  // namespace nescio::bindings
