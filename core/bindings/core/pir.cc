#include "probes/pir.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/thread_pool.h"
#include "bindings/bindings.h"
#include "bindings/bins.h"
#include "hash/records.h"
#include "pir/answer.h"
#include "pir/check.h"
#include "pir/layout.h"
#include "pir/patch/patched.h"

namespace nescio::bindings {
namespace {

using TierName = std::optional<std::string>;
using OutRows = nb::ndarray<std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

/// A table in memory of its own, or in the memory of a Python array.
class TableBuffer {
 public:
  TableBuffer(
      const Groups& bins, std::size_t row_bytes, const std::string& output,
      std::optional<nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>> data,
      const Window& window)
      : extent_(extent_of(bins, row_bytes, output, window)) {
    const std::size_t bytes = extent_.bytes();
    if (!data) {
      own_ = Buffer<std::uint8_t>(bytes);
      data_ = own_.data();
      return;
    }
    if (data->size() != bytes) {
      throw Error(ErrorKind::argument, "memory of a table: found " + std::to_string(data->size()) +
                                           " bytes, expected " + std::to_string(bytes) + " bytes");
    }
    array_ = std::move(*data);
    data_ = array_.data();
  }

  void store(std::uint64_t first, const ByteRows& rows, ThreadPool& pool, const TierName& tier) {
    check_width(rows.shape(1), extent_.row_bytes());
    const nb::gil_scoped_release release;
    pir::store_rows(extent_, rows.data(), first, rows.shape(0), data_, pool, tier_of(tier));
  }

  void replace_in(const pir::RowChanges& changes, ThreadPool& pool, Tier tier) {
    pir::replace_rows(extent_, changes, data_, pool, tier);
  }

  void replace(const pir::RowChanges& changes, ThreadPool& pool, const TierName& tier) {
    const nb::gil_scoped_release release;
    replace_in(changes, pool, tier_of(tier));
  }

  OutBytes load_range(std::uint64_t first, std::uint64_t count, ThreadPool& pool,
                      const TierName& tier) const {
    Buffer<std::uint8_t> rows(checked_product(count, extent_.row_bytes()));
    {
      const nb::gil_scoped_release release;
      pir::load_range(extent_, data_, first, count, rows.data(), pool, tier_of(tier));
    }
    return to_array(std::move(rows), {count, extent_.row_bytes()});
  }

  OutBytes load(const Numbers& indices, const TierName& tier) const {
    Buffer<std::uint8_t> rows(checked_product(indices.size(), extent_.row_bytes()));
    {
      const nb::gil_scoped_release release;
      pir::load_rows(extent_, data_, span_of(indices), rows.data(), tier_of(tier));
    }
    return to_array(std::move(rows), {indices.size(), extent_.row_bytes()});
  }

  /// Returns the number of answers to keys, and the bytes of each.
  std::array<std::size_t, 2> answer_shape(const GroupKeys& keys) const {
    check_present(keys);
    return {checked_product(pir::count_lookups(extent_, keys), extent_.bins().slots()),
            pir::answer_bytes(extent_.output(), extent_.row_bytes())};
  }

  pir::Table table() const { return {data_, extent_}; }

  OutBytes answer(const GroupKeys& keys, ThreadPool& pool, const TierName& tier) const {
    const std::array shape = answer_shape(keys);
    Buffer<std::uint8_t> out(checked_product(shape[0], shape[1]));
    {
      const nb::gil_scoped_release release;
      pir::answer(table(), keys, out.data(), pool, tier_of(tier));
    }
    return to_array(std::move(out), {shape[0], shape[1]});
  }

  const pir::TableExtent& extent() const { return extent_; }

  std::uint64_t read_all(ThreadPool& pool) const {
    const nb::gil_scoped_release release;
    return pir::read_all({data_, extent_}, pool);
  }

  std::size_t bytes() const { return extent_.bytes(); }
  std::uint8_t* data() const { return data_; }

 private:
  pir::TableExtent extent_;
  Buffer<std::uint8_t> own_;
  nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> array_;
  std::uint8_t* data_ = nullptr;
};

/// Throws unless an array of bytes has that shape.
void check_shape(const char* what, const ByteRows& array, std::size_t rows, std::size_t bytes) {
  if (array.shape(0) == rows && array.shape(1) == bytes) return;
  const auto text = [](std::size_t a, std::size_t b) {
    return "(" + std::to_string(a) + ", " + std::to_string(b) + ")";
  };
  throw Error(ErrorKind::argument, std::string(what) + ": found an array of shape " +
                                       text(array.shape(0), array.shape(1)) + ", expected " +
                                       text(rows, bytes));
}

bool check_rows(const Numbers& indices, const ByteRows& rows,
                const std::vector<ByteRows>& hash_rows, const ByteRows& tops,
                const std::optional<std::string>& tier, const std::optional<Numbers>& ranges) {
  check_shape("rows", rows, indices.size(), rows.shape(1));
  check_shape("top hashes", tops, tops.shape(0), hash::kHashBytes);
  std::vector<const std::uint8_t*> records;
  for (const ByteRows& level : hash_rows) {
    check_shape("rows of a hash table", level, indices.size(), hash::kHashRowBytes);
    records.push_back(level.data());
  }
  const nb::gil_scoped_release release;
  return pir::check_rows({span_of(indices), rows.data(), rows.shape(1), records, span_of(tops),
                          ranges ? span_of(*ranges) : std::span<const std::uint64_t>{}},
                         tier_of(tier));
}

void bind_row_changes(nb::module_& m) {
  using pir::RowChanges;
  nb::class_<RowChanges>(m, "RowChanges",
                         "Rows to overwrite, and a copy of their new bytes. Of several new rows "
                         "for one row, the last wins.")
      .def(
          "__init__",
          [](RowChanges* self, const Numbers& indices, const ByteRows& new_rows, const Groups& bins,
             ThreadPool& pool) {
            if (new_rows.shape(0) != indices.size()) {
              throw Error(ErrorKind::argument,
                          "new rows: found " + std::to_string(new_rows.shape(0)) + ", expected " +
                              std::to_string(indices.size()) + ", one for each index");
            }
            const nb::gil_scoped_release release;
            new (self) RowChanges(span_of(indices), new_rows.data(), new_rows.shape(1),
                                  bins_of(bins), pool);
          },
          nb::arg("indices"), nb::arg("new_rows"), nb::arg("bins"), nb::arg("pool"))
      .def("__len__", &RowChanges::size);
}

/// Makes a patch from rows before and after an update.
pir::Patch make_patch(const Numbers& indices, const ByteRows& old_rows, const ByteRows& new_rows,
                      const Groups& bins, const std::string& output, std::size_t lane_bytes,
                      const TierName& tier) {
  check_shape("old rows", old_rows, indices.size(), new_rows.shape(1));
  check_shape("new rows", new_rows, indices.size(), new_rows.shape(1));
  pir::TableExtent extent = extent_of(bins, new_rows.shape(1), output);
  const nb::gil_scoped_release release;
  return {std::move(extent), span_of(indices), old_rows.data(),
          new_rows.data(),   lane_bytes,       tier_of(tier)};
}

void check_patches(const std::vector<const pir::Patch*>& patches) {
  if (std::ranges::find(patches, nullptr) == patches.end()) return;
  throw Error(ErrorKind::argument, "patches: found None, expected nescio._core.Patch");
}

void add_patches(const std::vector<const pir::Patch*>& patches, const Numbers& ages,
                 const GroupKeys& keys, const OutRows& answers, ThreadPool& pool,
                 const TierName& tier) {
  check_present(keys);
  check_patches(patches);
  if (patches.empty()) return;
  const pir::TableExtent& extent = patches[0]->extent();
  const std::size_t bytes = pir::answer_bytes(extent.output(), extent.row_bytes());
  const std::size_t count = pir::count_lookups(extent, keys) * extent.bins().slots();
  if (answers.shape(0) != count || answers.shape(1) != bytes) {
    throw Error(ErrorKind::argument, "answers: found " + std::to_string(answers.shape(0)) + " of " +
                                         std::to_string(answers.shape(1)) + " bytes, expected " +
                                         std::to_string(count) + " of " + std::to_string(bytes));
  }
  const nb::gil_scoped_release release;
  pir::add_patches(patches, span_of(ages), keys, answers.data(), pool, tier_of(tier));
}

/// A table, the keys to it, the patches of older versions, and how many of them each lookup gets.
using Asked = std::tuple<const TableBuffer*, GroupKeys, std::vector<const pir::Patch*>, Numbers>;

std::vector<OutBytes> answer_all(const std::vector<Asked>& all, ThreadPool& pool,
                                 const TierName& tier) {
  std::vector<std::array<std::size_t, 2>> shapes;
  std::vector<Buffer<std::uint8_t>> answers;
  for (const auto& [table, keys, patches, ages] : all) {
    check_patches(patches);
    if (table == nullptr ||
        (!patches.empty() && !patches[0]->extent().same_table(table->extent()))) {
      throw Error(ErrorKind::argument, "tables: found one without its own patches, expected both");
    }
    shapes.push_back(table->answer_shape(keys));
    answers.emplace_back(checked_product(shapes.back()[0], shapes.back()[1]));
  }
  {
    const nb::gil_scoped_release release;
    const Tier own = tier_of(tier);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& [table, keys, patches, ages] = all[i];
      pir::answer_versions(table->table(), patches, span_of(ages), keys, answers[i].data(), pool,
                           own);
    }
  }
  std::vector<OutBytes> arrays;
  for (std::size_t i = 0; i < all.size(); ++i) {
    arrays.push_back(to_array(std::move(answers[i]), {shapes[i][0], shapes[i][1]}));
  }
  return arrays;
}

void bind_patches(nb::module_& m) {
  nb::class_<pir::Patch>(m, "Patch",
                         "The differences of the rows that an update changed, whose indices "
                         "increase: old rows minus new rows in the output group. Rows are cut into "
                         "lanes, of which those that differ are kept.")
      .def(
          "__init__",
          [](pir::Patch* self, const Numbers& indices, const ByteRows& old_rows,
             const ByteRows& new_rows, const Groups& bins, const std::string& output,
             std::size_t lane_bytes, const TierName& tier) {
            new (self)
                pir::Patch(make_patch(indices, old_rows, new_rows, bins, output, lane_bytes, tier));
          },
          nb::arg("indices"), nb::arg("old_rows"), nb::arg("new_rows"), nb::arg("bins"),
          nb::arg("output"), nb::arg("lane_bytes"), nb::arg("tier") = nb::none())
      .def_prop_ro("bytes", &pir::Patch::bytes, "Bytes of the differences and the rows' numbers.")
      .def("__len__", &pir::Patch::size);
  m.def("add_patches", &add_patches, nb::arg("patches"), nb::arg("ages"), nb::arg("keys"),
        nb::arg("answers"), nb::arg("pool"), nb::arg("tier") = nb::none(),
        "Make answers of the version before some patches of those after them, in place; `keys` and "
        "`answers` are those of `Table.answer`. Lookup i gets the first ages[i] patches.");
}

void replace_all(const std::vector<std::tuple<TableBuffer*, const pir::RowChanges*>>& all,
                 ThreadPool& pool, const TierName& tier) {
  for (const auto& [table, changes] : all) {
    if (table != nullptr && changes != nullptr) continue;
    throw Error(ErrorKind::argument, "tables: found None, expected a table and its changes");
  }
  const nb::gil_scoped_release release;
  for (const auto& [table, changes] : all) table->replace_in(*changes, pool, tier_of(tier));
}

void bind_all_tables(nb::module_& m) {
  m.def("answer_all", &answer_all, nb::arg("asked"), nb::arg("pool"), nb::arg("tier") = nb::none(),
        "Return the answers from several tables, each with its keys, patches and ages: "
        "`Table.answer` and `add_patches` for each. One call gives up the interpreter once.");
  m.def("replace_all", &replace_all, nb::arg("tables"), nb::arg("pool"),
        nb::arg("tier") = nb::none(), "Apply changes to several tables: `Table.replace` for each.");
}

}  // namespace

void bind_pir(nb::module_& m) {
  bind_row_changes(m);
  bind_patches(m);
  nb::class_<TableBuffer>(m, "Table",
                          "Rows in the layout of an output; in uninitialized memory of its own, or "
                          "in `data`. `window` is the first row, a multiple of TILE_ROWS, and the "
                          "number of those in memory, if not all are. `bins` are "
                          "groups of bins of one size: their number, the rows of each, and the "
                          "keys that a lookup sends to "
                          "each. Rows are numbered group by group and bin by bin.")
      .def(nb::init<
               const Groups&, std::size_t, const std::string&,
               std::optional<nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>>,
               const Window&>(),
           nb::arg("bins"), nb::arg("row_bytes"), nb::arg("output"), nb::arg("data") = nb::none(),
           nb::arg("window") = nb::none())
      .def("store", &TableBuffer::store, nb::arg("first"), nb::arg("rows"), nb::arg("pool"),
           nb::arg("tier") = nb::none(),
           "Store rows, beginning with row `first`, a multiple of TILE_ROWS in its bin.")
      .def("replace", &TableBuffer::replace, nb::arg("changes"), nb::arg("pool"),
           nb::arg("tier") = nb::none(), "Apply changes.")
      .def("load_range", &TableBuffer::load_range, nb::arg("first"), nb::arg("count"),
           nb::arg("pool"), nb::arg("tier") = nb::none(),
           "Return rows, beginning with row `first`, a multiple of TILE_ROWS in its bin.")
      .def("load", &TableBuffer::load, nb::arg("indices"), nb::arg("tier") = nb::none(),
           "Return the rows at some indices.")
      .def(
          "answer", &TableBuffer::answer, nb::arg("keys"), nb::arg("pool"),
          nb::arg("tier") = nb::none(),
          "Return the answers to the keys of some lookups, one per row: lookup by lookup, and in "
          "each by "
          "group, bin and key. `keys` has, for each group of bins, the keys of all lookups in this "
          "order.")
      .def("read_all", &TableBuffer::read_all, nb::arg("pool"),
           "Read every byte once, to measure an upper bound for answers; ignore the result.")
      .def_prop_ro("bytes", &TableBuffer::bytes, "Bytes of the table in its layout.")
      .def(
          "memory",
          [](nb::handle_t<TableBuffer> self) {
            const auto& table = nb::cast<const TableBuffer&>(self);
            return nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(table.data(), {table.bytes()},
                                                                     self);
          },
          "Return the table's memory, without a copy.");
  bind_all_tables(m);
  m.attr("TILE_ROWS") = pir::kTileRows;
  m.def(
      "table_bytes",
      [](const Groups& bins, std::size_t row_bytes, const std::string& output,
         const Window& window) { return extent_of(bins, row_bytes, output, window).bytes(); },
      nb::arg("bins"), nb::arg("row_bytes"), nb::arg("output"), nb::arg("window") = nb::none(),
      "Return the bytes of a table, or of a window of it, in the layout of its output.");
  m.def(
      "answer_bytes",
      [](const std::string& output, std::size_t row_bytes) {
        return pir::answer_bytes(dpf::parse_output(output), row_bytes);
      },
      nb::arg("output"), nb::arg("row_bytes"), "Return the length of each answer.");
  m.def(
      "check_rows", &check_rows, nb::arg("indices"), nb::arg("rows"), nb::arg("hash_rows"),
      nb::arg("tops"), nb::arg("tier") = nb::none(), nb::arg("ranges") = nb::none(),
      "Return true if every row has its hash in the rows of the hash tables, up to the top hashes; "
      "constant time. `ranges` has the first and the end of each index's top hashes, one after the "
      "other.");
}

}  // namespace nescio::bindings
