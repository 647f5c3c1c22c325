#include "base/thread_pool.h"
#include "bindings/bindings.h"
#include "pir/answer.h"

namespace nescio::bindings {
namespace {

OutBytes answer(const ByteRows& table_rows, const ByteRows& key_rows, const std::string& output,
                ThreadPool& pool, const std::optional<std::string>& tier) {
  const pir::Table table{table_rows.data(), table_rows.shape(0), table_rows.shape(1)};
  const std::vector<dpf::Key> keys = parse_keys(key_rows);
  const std::size_t bytes = pir::answer_bytes(dpf::parse_output(output), table.row_bytes);
  Buffer<std::uint8_t> out(keys.size() * bytes);
  {
    const nb::gil_scoped_release release;
    pir::answer(table, keys, out.data(), pool, tier_of(tier));
  }
  return to_array(std::move(out), {keys.size(), bytes});
}

}  // namespace

void bind_pir(nb::module_& m) {
  m.def("answer", &answer, nb::arg("table"), nb::arg("keys"), nb::arg("output"), nb::arg("pool"),
        nb::arg("tier") = nb::none(), "Answers to keys, a row each.");
  m.def(
      "answer_bytes",
      [](const std::string& output, std::size_t row_bytes) {
        return pir::answer_bytes(dpf::parse_output(output), row_bytes);
      },
      nb::arg("output"), nb::arg("row_bytes"), "The length of each answer.");
}

}  // namespace nescio::bindings
