#include <nanobind/stl/unique_ptr.h>

#include <algorithm>

#include "base/thread_pool.h"
#include "bindings/bindings.h"
#include "rlwe/layer.h"

namespace nescio::bindings {
namespace {

using rlwe::Ciphertexts;
using rlwe::ClientKey;
using rlwe::kDegree;
using rlwe::PublicKey;
using rlwe::Results;
using rlwe::Seed;
using rlwe::WeightPart;
using rlwe::Weights;
using Polynomials = InArray<std::uint32_t, nb::ndim<2>>;
using Words = InArray<std::uint32_t, nb::ndim<1>>;
using Part = std::tuple<Words, ByteRows, InArray<std::int32_t, nb::ndim<1>>>;
using SeedBytes = InArray<std::uint8_t, nb::ndim<1>>;
using Name = std::optional<std::string>;

void check_degree(std::size_t found) {
  if (found == kDegree) return;
  throw Error(ErrorKind::argument, "coefficients of a polynomial: found " + std::to_string(found) +
                                       ", expected " + std::to_string(kDegree));
}

/// Returns the caller's seed, or one from the operating system.
Seed seed_of(const std::optional<SeedBytes>& given) {
  if (!given) return rlwe::random_seed();
  Seed seed;
  if (given->size() != seed.size()) {
    throw Error(ErrorKind::argument, "seed: found " + std::to_string(given->size()) +
                                         " bytes, expected " + std::to_string(seed.size()));
  }
  std::copy_n(given->data(), seed.size(), seed.begin());
  return seed;
}

std::unique_ptr<ClientKey> make_key(const std::optional<SeedBytes>& secret,
                                    const std::optional<SeedBytes>& open, const Name& tier) {
  return std::make_unique<ClientKey>(seed_of(secret), seed_of(open), tier_of(tier));
}

OutBytes public_key_of(const ClientKey& key) {
  const auto bytes = key.public_key();
  Buffer<std::uint8_t> out(bytes.size());
  std::copy(bytes.begin(), bytes.end(), out.data());
  return to_array(std::move(out), {bytes.size()});
}

OutBytes encrypt(const ClientKey& key, const Polynomials& messages, ThreadPool& pool,
                 const std::optional<SeedBytes>& secret, const std::optional<SeedBytes>& open,
                 const Name& tier) {
  check_degree(messages.shape(1));
  Buffer<std::uint8_t> out;
  {
    const nb::gil_scoped_release release;
    out = rlwe::encrypt(key, messages.data(), messages.shape(0), seed_of(secret), seed_of(open),
                        pool, tier_of(tier));
  }
  const std::size_t size = out.size();
  return to_array(std::move(out), {size});
}

OutArray<std::uint32_t> decrypt(const ClientKey& key, const Results& results, const Bytes& answer,
                                std::size_t tiles, ThreadPool& pool, const Name& tier) {
  Buffer<std::uint32_t> shares;
  {
    const nb::gil_scoped_release release;
    shares = rlwe::decrypt(key, results, span_of(answer), tiles, pool, tier_of(tier));
  }
  const std::size_t size = shares.size();
  return to_array(std::move(shares), {size});
}

std::unique_ptr<Weights> make_weights(const std::vector<Part>& given, ThreadPool& pool,
                                      bool keep_transformed, const Name& tier) {
  std::vector<WeightPart> parts;
  const std::size_t outputs = given.empty() ? 0 : std::get<1>(given.front()).shape(0);
  for (const auto& [positions, present, values] : given) {
    parts.push_back({present.shape(1), span_of(positions), span_of(present), span_of(values)});
  }
  const nb::gil_scoped_release release;
  return std::make_unique<Weights>(parts, outputs, keep_transformed, pool, tier_of(tier));
}

std::pair<OutBytes, OutArray<std::uint32_t>> evaluate(
    const Weights& weights, const PublicKey& key, const Results& results,
    const std::vector<const Ciphertexts*>& ciphertexts, std::size_t tiles, ThreadPool& pool,
    const std::optional<SeedBytes>& seed, const Name& tier) {
  rlwe::Evaluation out;
  {
    const nb::gil_scoped_release release;
    out = rlwe::evaluate(key, weights, results, ciphertexts, tiles, seed_of(seed), pool,
                         tier_of(tier));
  }
  const std::size_t bytes = out.answer.size(), shares = out.shares.size();
  return {to_array(std::move(out.answer), {bytes}), to_array(std::move(out.shares), {shares})};
}

}  // namespace

void bind_rlwe(nb::module_& m) {
  m.attr("RLWE_DEGREE") = kDegree;
  nb::class_<Results>(m, "RlweResults",
                      "The results of each output, the positions of all of them, and their bits.")
      .def(
          "__init__",
          [](Results* self, const Words& counts, const Words& positions, unsigned bits) {
            new (self) Results(span_of(counts), span_of(positions), bits);
          },
          nb::arg("counts").noconvert(), nb::arg("positions").noconvert(), nb::kw_only(),
          nb::arg("bits") = rlwe::kMessageBits);
  nb::class_<ClientKey>(m, "RlweClientKey", "A client's secret key and its public key.")
      .def(nb::new_(&make_key), nb::kw_only(), nb::arg("insecure_secret_seed") = nb::none(),
           nb::arg("insecure_public_seed") = nb::none(), nb::arg("tier") = nb::none())
      .def("public_key", &public_key_of, "Return the message for the server.")
      .def("encrypt", &encrypt, nb::arg("messages").noconvert(), nb::arg("pool"), nb::kw_only(),
           nb::arg("insecure_secret_seed") = nb::none(),
           nb::arg("insecure_public_seed") = nb::none(), nb::arg("tier") = nb::none(),
           "Encrypt polynomials over Z_2^32, one per row.")
      .def("decrypt", &decrypt, nb::arg("results"), nb::arg("answer").noconvert(), nb::arg("tiles"),
           nb::arg("pool"), nb::kw_only(), nb::arg("tier") = nb::none(),
           "Return the client's shares, by tile, output and position.");
  nb::class_<PublicKey>(m, "RlwePublicKey", "A client's public key, at the server.")
      .def(
          "__init__",
          [](PublicKey* self, const Bytes& bytes, ThreadPool& pool, const Name& tier) {
            new (self) PublicKey(span_of(bytes), pool, tier_of(tier));
          },
          nb::arg("message").noconvert(), nb::arg("pool"), nb::kw_only(),
          nb::arg("tier") = nb::none());
  nb::class_<Ciphertexts>(m, "RlweCiphertexts", "Ciphertexts of a client, at the server.")
      .def(
          "__init__",
          [](Ciphertexts* self, const Bytes& bytes, std::size_t count, ThreadPool& pool,
             const Name& tier) {
            const nb::gil_scoped_release release;
            new (self) Ciphertexts("ciphertexts", span_of(bytes), count, pool, tier_of(tier));
          },
          nb::arg("message").noconvert(), nb::arg("count"), nb::arg("pool"), nb::kw_only(),
          nb::arg("tier") = nb::none());
  nb::class_<Weights>(
      m, "RlweWeights",
      "The weights of a product, in parts: positions of the coefficients that are not zero, the "
      "polynomials (outputs, inputs) that are not zero, and their coefficients. Threads may share "
      "them. They are kept transformed, or transformed for each evaluation.")
      .def(nb::new_(&make_weights), nb::arg("parts").noconvert(), nb::arg("pool"), nb::kw_only(),
           nb::arg("keep_transformed") = true, nb::arg("tier") = nb::none())
      .def_prop_ro("bytes", &Weights::bytes, "The bytes that are kept.")
      .def("evaluate", &evaluate, nb::arg("key"), nb::arg("results"), nb::arg("ciphertexts"),
           nb::arg("tiles"), nb::arg("pool"), nb::kw_only(), nb::arg("insecure_seed") = nb::none(),
           nb::arg("tier") = nb::none(),
           "Return the answer, and the server's shares by tile, output and position.");
}

}  // namespace nescio::bindings
