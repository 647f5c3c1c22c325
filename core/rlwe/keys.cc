#include "rlwe/keys.h"

#include <cstring>

#include "rlwe/messages.h"

namespace nescio::rlwe {
namespace {

/// Writes ciphertext `number` of N words `m`: c0 = round(q m / 2^32) + e - c1 s.
void encrypt_one(ConstRow const* secret_key, const std::uint32_t* m, const Sampler& secret,
                 const Sampler& open, std::uint32_t number, std::uint8_t* out, Tier tier) {
  const Kernels& kernels = kernels_of(tier);
  SecretBuffer<std::int32_t> error(kDegree);
  SecretBuffer<std::uint32_t> rows(2 * kDegree);
  const Row c0 = rows.data(), product = c0 + kDegree;
  secret.errors(number, error.data());
  for (unsigned i = 0; i < 2; ++i) {
    kernels.scale_up(i, m, c0);
    kernels.add_signed(i, error.data(), c0);
    kernels.forward(i, c0);
    open.variable_time_uniform(number, i, product);
    const Term term = {product, secret_key[i]};
    kernels.multiply(i, {&term, 1}, product);
    kernels.subtract(i, product, c0);
    write_row(c0, out + i * kRowBytes);
  }
}

}  // namespace

ClientKey::ClientKey(const Seed& secret, const Seed& open, Tier tier)
    : secret_(2 * kDegree), public_(ciphertexts_bytes(1)) {
  const Kernels& kernels = kernels_of(tier);
  const Sampler secret_sampler(secret, tier), open_sampler(open, tier);
  SecretBuffer<std::int32_t> s(kDegree);
  secret_sampler.ternary(0, s.data());
  for (unsigned i = 0; i < 2; ++i) {
    const Row row = secret_.data() + i * kDegree;
    kernels.set_signed(i, s.data(), row);
    kernels.forward(i, row);
    kernels.to_montgomery(i, row);
  }
  Buffer<std::uint32_t> zeros(kDegree);
  std::memset(zeros.data(), 0, kDegree * sizeof(std::uint32_t));
  std::memcpy(public_.data(), open.data(), kSeedBytes);
  const ConstRow rows[2] = {this->secret(0), this->secret(1)};
  encrypt_one(rows, zeros.data(), secret_sampler, open_sampler, 0, public_.data() + kSeedBytes,
              tier);
}

Buffer<std::uint8_t> encrypt(const ClientKey& key, const std::uint32_t* messages, std::size_t count,
                             const Seed& secret, const Seed& open, ThreadPool& pool, Tier tier) {
  const Sampler secret_sampler(secret, tier), open_sampler(open, tier);
  const ConstRow rows[2] = {key.secret(0), key.secret(1)};
  Buffer<std::uint8_t> out(ciphertexts_bytes(count));
  std::memcpy(out.data(), open.data(), kSeedBytes);
  pool.run(count, [&](std::size_t k, unsigned) {
    encrypt_one(rows, messages + k * kDegree, secret_sampler, open_sampler,
                static_cast<std::uint32_t>(k), out.data() + kSeedBytes + 2 * k * kRowBytes, tier);
  });
  return out;
}

Ciphertexts::Ciphertexts(const char* message, std::span<const std::uint8_t> bytes,
                         std::size_t count, ThreadPool& pool, Tier tier) {
  check_length(message, bytes.size(), ciphertexts_bytes(count));
  rows_ = Buffer<std::uint32_t>(checked_product(count, 4 * kDegree));
  Seed seed;
  std::memcpy(seed.data(), bytes.data(), kSeedBytes);
  const Sampler open(seed, tier);
  pool.run(count, [&](std::size_t k, unsigned) {
    for (unsigned i = 0; i < 2; ++i) {
      read_row(bytes.data() + kSeedBytes + (2 * k + i) * kRowBytes, i, row(k, 0, i));
      open.variable_time_uniform(static_cast<std::uint32_t>(k), i, row(k, 1, i));
    }
  });
}

PublicKey::PublicKey(std::span<const std::uint8_t> bytes, ThreadPool& pool, Tier tier)
    : zero_("public key", bytes, 1, pool, tier) {
  for (unsigned part = 0; part < 2; ++part) {
    for (unsigned i = 0; i < 2; ++i) kernels_of(tier).to_montgomery(i, zero_.row(0, part, i));
  }
}

}  // namespace nescio::rlwe
