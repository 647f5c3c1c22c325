#include "prg/aes128.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/bits.h"

// The portable AES is bit-sliced: no table index depends on data, so it runs in constant time on any
// machine. It encrypts four blocks at once, as 8 planes of 64 bits:
// bit 16r + 4c + b of plane i is bit i of the byte in row r, column c of block b. In this order
// ShiftRows rotates 16-bit fields and MixColumns rotates whole planes.

namespace nescio::prg::aes128 {
namespace {

constexpr std::size_t kLanes = 4;
using Planes = std::array<std::uint64_t, 8>;
using Bytes = std::array<std::uint8_t, 16>;

/// Returns the position of byte `p` (column-major, FIPS 197 section 3.4) of block `b` in that order.
constexpr std::size_t sliced_position(std::size_t p, std::size_t b) {
  return 16 * (p % 4) + 4 * (p / 4) + b;
}

Planes slice(const Block* in) {
  std::array<std::uint8_t, 64> bytes;
  for (std::size_t b = 0; b < kLanes; ++b) {
    const auto block = std::bit_cast<Bytes>(in[b]);
    for (std::size_t p = 0; p < 16; ++p) bytes[sliced_position(p, b)] = block[p];
  }
  const auto words = std::bit_cast<std::array<std::uint64_t, 8>>(bytes);
  Planes planes{};
  for (std::size_t g = 0; g < 8; ++g) {
    const std::uint64_t rows = transpose_bits(words[g]);
    for (std::size_t i = 0; i < 8; ++i) planes[i] |= ((rows >> (8 * i)) & 0xFF) << (8 * g);
  }
  return planes;
}

void unslice(const Planes& planes, Block* out) {
  std::array<std::uint64_t, 8> words{};
  for (std::size_t g = 0; g < 8; ++g) {
    std::uint64_t rows = 0;
    for (std::size_t i = 0; i < 8; ++i) rows |= ((planes[i] >> (8 * g)) & 0xFF) << (8 * i);
    words[g] = transpose_bits(rows);
  }
  const auto bytes = std::bit_cast<std::array<std::uint8_t, 64>>(words);
  for (std::size_t b = 0; b < kLanes; ++b) {
    Bytes block;
    for (std::size_t p = 0; p < 16; ++p) block[p] = bytes[sliced_position(p, b)];
    out[b] = std::bit_cast<Block>(block);
  }
}

/// The S-box as a Boolean circuit, without a table: Boyar and Peralta, "A new
/// combinational logic minimization technique with applications to cryptology" (eprint 2009/191).
/// Names are theirs; U0 and S0 are the most significant bits.
void sub_bytes(Planes& q) {
  const std::uint64_t U0 = q[7], U1 = q[6], U2 = q[5], U3 = q[4];
  const std::uint64_t U4 = q[3], U5 = q[2], U6 = q[1], U7 = q[0];

  // Top linear layer.
  const std::uint64_t y14 = U3 ^ U5, y13 = U0 ^ U6, y9 = U0 ^ U3, y8 = U0 ^ U5;
  const std::uint64_t t0 = U1 ^ U2, y1 = t0 ^ U7, y4 = y1 ^ U3, y12 = y13 ^ y14;
  const std::uint64_t y2 = y1 ^ U0, y5 = y1 ^ U6, y3 = y5 ^ y8, t1 = U4 ^ y12;
  const std::uint64_t y15 = t1 ^ U5, y20 = t1 ^ U1, y6 = y15 ^ U7, y10 = y15 ^ t0;
  const std::uint64_t y11 = y20 ^ y9, y7 = U7 ^ y11, y17 = y10 ^ y11, y19 = y10 ^ y8;
  const std::uint64_t y16 = t0 ^ y11, y21 = y13 ^ y16, y18 = U0 ^ y16;

  // Inversion in GF(2^8), by way of GF(2^4).
  const std::uint64_t t2 = y12 & y15, t4 = (y3 & y6) ^ t2, t6 = (y4 & U7) ^ t2;
  const std::uint64_t t7 = y13 & y16, t9 = (y5 & y1) ^ t7, t11 = (y2 & y7) ^ t7;
  const std::uint64_t t12 = y9 & y11, t14 = (y14 & y17) ^ t12, t16 = (y8 & y10) ^ t12;
  const std::uint64_t t21 = t4 ^ t14 ^ y20, t22 = t6 ^ t16 ^ y19;
  const std::uint64_t t23 = t9 ^ t14 ^ y21, t24 = t11 ^ t16 ^ y18;
  const std::uint64_t t25 = t21 ^ t22, t26 = t21 & t23, t27 = t24 ^ t26;
  const std::uint64_t t29 = (t25 & t27) ^ t22, t30 = t23 ^ t24, t31 = t22 ^ t26;
  const std::uint64_t t33 = (t31 & t30) ^ t24, t34 = t23 ^ t33, t35 = t27 ^ t33;
  const std::uint64_t t36 = t24 & t35, t37 = t36 ^ t34, t38 = t27 ^ t36;
  const std::uint64_t t40 = t25 ^ (t29 & t38), t41 = t40 ^ t37, t42 = t29 ^ t33;
  const std::uint64_t t43 = t29 ^ t40, t44 = t33 ^ t37, t45 = t42 ^ t41;
  const std::uint64_t z0 = t44 & y15, z1 = t37 & y6, z2 = t33 & U7, z3 = t43 & y16;
  const std::uint64_t z4 = t40 & y1, z5 = t29 & y7, z6 = t42 & y11, z7 = t45 & y17;
  const std::uint64_t z8 = t41 & y10, z9 = t44 & y12, z10 = t37 & y3, z11 = t33 & y4;
  const std::uint64_t z12 = t43 & y13, z13 = t40 & y5, z14 = t29 & y2, z15 = t42 & y9;
  const std::uint64_t z16 = t45 & y14, z17 = t41 & y8;

  // Bottom linear layer, with the affine constant 0x63.
  const std::uint64_t t46 = z15 ^ z16, t47 = z10 ^ z11, t48 = z5 ^ z13, t49 = z9 ^ z10;
  const std::uint64_t t50 = z2 ^ z12, t51 = z2 ^ z5, t52 = z7 ^ z8, t53 = z0 ^ z3;
  const std::uint64_t t54 = z6 ^ z7, t55 = z16 ^ z17, t56 = z12 ^ t48, t57 = t50 ^ t53;
  const std::uint64_t t58 = z4 ^ t46, t59 = z3 ^ t54, t60 = t46 ^ t57, t61 = z14 ^ t57;
  const std::uint64_t t62 = t52 ^ t58, t63 = t49 ^ t58, t64 = z4 ^ t59, t65 = t61 ^ t62;
  const std::uint64_t t66 = z1 ^ t63, t67 = t64 ^ t65, S3 = t53 ^ t66;
  q[7] = t59 ^ t63;     // S0
  q[6] = ~(t64 ^ S3);   // S1
  q[5] = ~(t55 ^ t67);  // S2
  q[4] = S3;            // S3
  q[3] = t51 ^ t66;     // S4
  q[2] = t47 ^ t65;     // S5
  q[1] = ~(t56 ^ t62);  // S6
  q[0] = ~(t48 ^ t60);  // S7
}

/// Row r of the state moves left by r columns: its 16-bit field rotates right by 4r bits.
constexpr std::uint64_t shift_rows(std::uint64_t x) {
  return (x & 0x000000000000FFFFull) |                                               //
         ((x >> 4) & 0x000000000FFF0000ull) | ((x << 12) & 0x00000000F0000000ull) |  //
         ((x >> 8) & 0x000000FF00000000ull) | ((x << 8) & 0x0000FF0000000000ull) |   //
         ((x >> 12) & 0x000F000000000000ull) | ((x << 4) & 0xFFF0000000000000ull);
}

/// b_r = 2 (a_r ^ a_{r+1}) ^ a_{r+1} ^ a_{r+2} ^ a_{r+3}; doubling moves planes up, mod
/// x^8+x^4+x^3+x+1.
void mix_columns(Planes& q) {
  Planes sum, rest;
  for (std::size_t i = 0; i < 8; ++i) {
    const std::uint64_t next = std::rotr(q[i], 16);
    sum[i] = q[i] ^ next;
    rest[i] = next ^ std::rotr(sum[i], 32);
  }
  for (std::size_t i = 0; i < 8; ++i) q[i] = rest[i] ^ sum[(i + 7) % 8];
  for (std::size_t i : {1u, 3u, 4u}) q[i] ^= sum[7];
}

using SlicedKeys = std::array<Planes, 11>;

SlicedKeys slice_keys(const RoundKeys& keys) {
  SlicedKeys sliced;
  for (std::size_t round = 0; round < sliced.size(); ++round) {
    std::array<Block, kLanes> copies;
    copies.fill(keys.key[round]);
    sliced[round] = slice(copies.data());
  }
  return sliced;
}

void add_round_key(Planes& state, const Planes& key) {
  for (std::size_t i = 0; i < 8; ++i) state[i] ^= key[i];
}

void encrypt4(const SlicedKeys& keys, const Block* in, Block* out) {
  Planes state = slice(in);
  add_round_key(state, keys[0]);
  for (std::size_t round = 1; round <= 10; ++round) {
    sub_bytes(state);
    for (std::uint64_t& plane : state) plane = shift_rows(plane);
    if (round < 10) mix_columns(state);
    add_round_key(state, keys[round]);
  }
  unslice(state, out);
}

const SlicedKeys& fixed_sliced_keys() {
  static const SlicedKeys keys = slice_keys(fixed_round_keys());
  return keys;
}

constexpr Block sigma(Block s) { return {s.hi, s.hi ^ s.lo}; }
constexpr Block number(std::uint64_t j) { return {j, 0}; }

/// out[i] = pi(in[i]) ^ in[i] for four blocks.
void hash4(const Block* in, Block* out) {
  encrypt4(fixed_sliced_keys(), in, out);
  for (std::size_t i = 0; i < kLanes; ++i) out[i] ^= in[i];
}

constexpr std::uint8_t times2(std::uint8_t a) {
  return static_cast<std::uint8_t>((a << 1) ^ ((a >> 7) * 0x1B));
}

constexpr std::uint8_t multiply(std::uint8_t a, std::uint8_t b) {
  std::uint8_t product = 0;
  for (; b != 0; b = static_cast<std::uint8_t>(b >> 1), a = times2(a)) {
    if (b & 1) product ^= a;
  }
  return product;
}

/// The S-box by its definition (FIPS 197, section 5.1.1): a^254, then the affine map.
std::uint8_t variable_time_sub_byte(std::uint8_t a) {
  std::uint8_t inverse = 1;
  for (int i = 0; i < 254; ++i) inverse = multiply(inverse, a);
  std::uint8_t result = 0x63;
  for (int i = 0; i < 5; ++i) result ^= std::rotl(inverse, i);
  return result;
}

const std::array<std::uint8_t, 256>& sub_bytes_table() {
  static const auto table = [] {
    std::array<std::uint8_t, 256> box;
    for (unsigned a = 0; a < box.size(); ++a) {
      box[a] = variable_time_sub_byte(static_cast<std::uint8_t>(a));
    }
    return box;
  }();
  return table;
}

}  // namespace

RoundKeys variable_time_expand_key(Block key) {
  const auto& box = sub_bytes_table();
  std::array<std::array<std::uint8_t, 4>, 44> words;
  std::memcpy(words.data(), &key, sizeof(key));
  for (std::size_t i = 4; i < words.size(); ++i) {
    auto word = words[i - 1];
    if (i % 4 == 0) {
      std::rotate(word.begin(), word.begin() + 1, word.end());
      for (std::uint8_t& byte : word) byte = box[byte];
      word[0] ^= kRoundConstants[i / 4 - 1];
    }
    for (std::size_t k = 0; k < 4; ++k) words[i][k] = words[i - 4][k] ^ word[k];
  }
  RoundKeys keys;
  std::memcpy(keys.key.data(), words.data(), sizeof(keys));
  return keys;
}

const RoundKeys& fixed_round_keys() {
  static const RoundKeys keys = [] {
    Block key;
    std::memcpy(&key, "Nescio fixed key", sizeof(key));
    return variable_time_expand_key(key);
  }();
  return keys;
}

Cipher cipher_of(Tier tier) {
  return {NESCIO_PICK(tier, encrypt), NESCIO_PICK(tier, count), NESCIO_PICK(tier, expand_keys)};
}

namespace portable {

void encrypt(const RoundKeys& keys, const Block* in, std::size_t n, Block* out) {
  const SlicedKeys sliced = slice_keys(keys);
  for (std::size_t i = 0; i < n; i += kLanes) {
    std::array<Block, kLanes> blocks{};
    const std::size_t count = std::min(kLanes, n - i);
    std::copy_n(in + i, count, blocks.begin());
    encrypt4(sliced, blocks.data(), blocks.data());
    std::copy_n(blocks.begin(), count, out + i);
  }
}

void count(const RoundKeys& keys, std::uint64_t first, std::size_t n, Block* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = {first + i, 0};
  encrypt(keys, out, n, out);
}

void expand_keys(Block base, std::uint64_t first, std::size_t n, RoundKeys* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = variable_time_expand_key(base ^ number(first + i));
}

void expand(const Block* parents, std::size_t n, Corrections corrections, Block* out) {
  for (std::size_t i = 0; i < n; i += 2) {
    const std::size_t own[2] = {i, std::min(i + 1, n - 1)};
    const Block x = sigma(parents[own[0]]), y = sigma(parents[own[1]]);
    const std::array<Block, kLanes> in = {x, x ^ number(1), y, y ^ number(1)};
    std::array<Block, kLanes> children;
    hash4(in.data(), children.data());
    for (std::size_t k = 0; k < 2 * std::min<std::size_t>(2, n - i); ++k) {
      const Block mask = block_mask(control_bit(parents[own[k / 2]]));
      out[2 * i + k] = children[k] ^ (mask & corrections.of(own[k / 2], 2)[k % 2]);
    }
  }
}

void leaves(const Block* nodes, std::size_t n, Corrections corrections, Block* out) {
  for (std::size_t i = 0; i < n; ++i) {
    const Block mask = block_mask(control_bit(nodes[i]));
    std::array<Block, kLanes> in;
    for (std::size_t j = 0; j < kLanes; ++j) in[j] = sigma(nodes[i]) ^ number(kFirstLeafTweak + j);
    hash4(in.data(), out + 4 * i);
    for (std::size_t j = 0; j < kLanes; ++j) out[4 * i + j] ^= mask & corrections.of(i, 4)[j];
  }
}

}  // namespace portable
}  // namespace nescio::prg::aes128
