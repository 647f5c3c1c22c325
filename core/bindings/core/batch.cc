#include "base/thread_pool.h"
#include "batch/assign.h"
#include "batch/pairs.h"
#include "batch/together.h"
#include "bindings/bindings.h"

namespace nescio::bindings {
namespace {

using Offsets = InArray<std::int64_t, nb::ndim<1>>;
using Rows = InArray<std::int64_t, nb::ndim<1>>;
using RowLists = InArray<std::int64_t, nb::ndim<2>>;
using Bins = InArray<std::int32_t, nb::ndim<1>>;
using BinLists = InArray<std::int32_t, nb::ndim<2>>;

OutArray<std::int8_t> assign(const Offsets& offsets, const BinLists& candidates,
                             const Bins& capacity, const BinLists& together, ThreadPool& pool) {
  if (together.shape(0) != candidates.shape(0) || candidates.shape(1) == 0) {
    throw Error(ErrorKind::argument,
                "accesses: found " + std::to_string(candidates.shape(0)) + " lines of " +
                    std::to_string(candidates.shape(1)) + " candidates and " +
                    std::to_string(together.shape(0)) +
                    " lines of neighbors, expected as many, with at least one candidate");
  }
  Buffer<std::int8_t> out(candidates.shape(0));
  {
    const nb::gil_scoped_release release;
    batch::assign({span_of(offsets), span_of(candidates), candidates.shape(1), span_of(together),
                   together.shape(1)},
                  span_of(capacity), out.data(), pool);
  }
  return to_array(std::move(out), {candidates.shape(0)});
}

OutArray<std::int32_t> find_together(const Offsets& offsets, const Rows& rows, const Rows& lists,
                                     const RowLists& neighbors, ThreadPool& pool) {
  const std::size_t width = neighbors.shape(1);
  Buffer<std::int32_t> out(checked_product(rows.size(), width));
  {
    const nb::gil_scoped_release release;
    batch::find_together(span_of(offsets), span_of(rows), span_of(lists), span_of(neighbors), width,
                         out.data(), pool);
  }
  return to_array(std::move(out), {rows.size(), width});
}

OutArray<std::int64_t> count_pairs(const Offsets& offsets, const Rows& rows, const Rows& users,
                                   std::size_t limit, std::size_t count, std::int64_t min_users,
                                   ThreadPool& pool) {
  Buffer<std::int64_t> out(checked_product(limit, count));
  {
    const nb::gil_scoped_release release;
    batch::count_pairs({span_of(offsets), span_of(rows), span_of(users), limit}, count, min_users,
                       out.data(), pool);
  }
  return to_array(std::move(out), {limit, count});
}

}  // namespace

void bind_batch(nb::module_& m) {
  m.def("assign", &assign, nb::arg("offsets"), nb::arg("candidates"), nb::arg("capacity"),
        nb::arg("together"), nb::arg("pool"),
        "Assign the accesses of sets to bins: the number of the candidate that each uses, -1 if it "
        "is dropped, -2 if another access brings it.");
  m.def("find_together", &find_together, nb::arg("offsets"), nb::arg("rows"), nb::arg("lists"),
        nb::arg("neighbors"), nb::arg("pool"),
        "Return, for each access, the accesses of its set whose rows are in its list of neighbors; "
        "-1 for a row that is not in the set.");
  m.def("count_pairs", &count_pairs, nb::arg("offsets"), nb::arg("rows"), nb::arg("users"),
        nb::arg("limit"), nb::arg("count"), nb::arg("min_users"), nb::arg("pool"),
        "Return, for each row below the limit, the rows that most sets have together with it, in "
        "sets of at least min_users users; -1 where there are fewer.");
}

}  // namespace nescio::bindings
