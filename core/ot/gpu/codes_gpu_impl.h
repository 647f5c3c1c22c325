// The part of the body of ot/gpu/device_gpu.h that works on leaves: codes, hash and check. Included
// once for each device.

#include "ot/gpu/check_gpu.h"
#include "ot/gpu/device_gpu_impl.h"
#include "ot/gpu/expand_convolute_gpu.h"
#include "ot/gpu/hash_gpu.h"
#include "ot/gpu/primal_gpu.h"

namespace nescio::ot {

template <gpu::ComputeDevice Device>
void OtDevice<Device>::encode_primal(const Blocks& noise, const Blocks& seeds, Seed code_seed,
                                     std::uint64_t first_row, PrimalWay way) {
  prepare(noise);
  prepare(seeds);
  if (seeds.size() == 0 || seeds.size() > kMaxSeeds) {
    throw argument_error("blocks of the short secret", seeds.size(),
                         "1 to " + std::to_string(kMaxSeeds));
  }
  if (first_row > std::numeric_limits<std::uint64_t>::max() / kRowWeight - noise.size()) {
    throw argument_error("first row", first_row, "a smaller row: a code has 2^64 / 10 rows");
  }
  if (noise.size() == 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::uint64_t pairs = EncodePrimal::pairs(first_row, noise.size());
  EncodePrimal encode = {aes(),        round_keys_of(code_seed),
                         seeds.data(), static_cast<std::uint32_t>(seeds.size()),
                         first_row,    noise.size(),
                         nullptr,      noise.data()};
  std::unique_ptr<Array<Block>> words, product;
  if (way != PrimalWay::fused) {
    words = allocate<Block>(pairs * kPrimalBlocks);
    const MakeWords make = {aes(), encode.keys, first_row / kPrimalRows * kPrimalBlocks,
                            words->data()};
    launch_tiles(make, words->size());
    encode.words = words->data();
  }
  if (way == PrimalWay::separate) {
    product = allocate<Block>(noise.size());
    device().zero(product->data(), noise.size() * sizeof(Block));
    encode.out = product->data();
  }
  launch_tiles(encode, pairs);
  if (way == PrimalWay::separate) {
    launch(AddBlocks{{noise.size()}, product->data(), noise.data()});
  }
  device().finish();
}

/// Computes the state at the start of each segment from the states that segments end in if they
/// start with a zero state, and from their maps.
template <gpu::ComputeDevice Device>
auto OtDevice<Device>::chain(const std::uint32_t* states, std::uint64_t segments)
    -> std::unique_ptr<Array<std::uint32_t>> {
  const auto root = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(segments)));
  const std::uint64_t group = std::max<std::uint64_t>(root, 1), groups = ceil_div(segments, group);
  auto before = allocate<std::uint32_t>(segments * kStateWords);
  const auto after = allocate<std::uint32_t>(groups * kStateWords);
  const auto starts = allocate<std::uint32_t>(groups * kStateWords);
  launch(ChainSegments{segments, group, states, nullptr, nullptr, after->data()});
  launch(ChainSegments{groups, groups, after->data(), nullptr, starts->data(), nullptr});
  launch(ChainSegments{segments, group, states, starts->data(), before->data(), nullptr});
  return before;
}

/// Accumulates `count` blocks in place.
template <gpu::ComputeDevice Device>
void OtDevice<Device>::convolute(Block* y, std::uint64_t count, const prg::AesColumns& keys,
                                 const EcTuning& tuning) {
  const auto masks = allocate<Block>(ceil_div(count, kBlockWords));
  const MakeWords make = {aes(), keys, 0, masks->data()};
  launch_tiles(make, masks->size());
  auto* words = reinterpret_cast<SharedWord*>(y);
  const Segments of = {count, tuning.segment, reinterpret_cast<const SharedWord*>(masks->data()),
                       words};
  std::unique_ptr<Array<std::uint32_t>> before;
  if (of.count() > 1) {
    const auto states = allocate<std::uint32_t>(of.count() * kStateWords);
    launch(MeasureSegments{{of.count() * kEntryWords}, of, states->data()});
    before = chain(states->data(), of.count());
  }
  const auto end_state = allocate<std::uint32_t>(kAccumulatorSize * kBlockWords);
  launch(RunSegments{
      {of.count() * kBlockWords}, of, before ? before->data() : nullptr, end_state->data()});
  launch(WrapAround{{end_state->size()}, end_state->data(), words});
}

template <gpu::ComputeDevice Device>
void OtDevice<Device>::encode_ec(const Blocks& noise, Seed code_seed, const EcTuning& tuning) {
  prepare(noise);
  const std::uint64_t n = noise.size() / 2;
  if (noise.size() % 2 != 0 || n < kMinOutputs || n > std::uint64_t{1} << 32) {
    throw argument_error("blocks of noise", noise.size(), "an even number, from 128 to 2^33");
  }
  if (tuning.segment == 0 || tuning.segment % kAccumulatorSize != 0) {
    throw argument_error("segment", tuning.segment, "a positive multiple of 25 blocks");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  Block* y = noise.data() + n;
  convolute(y, n, round_keys_of(code_seed, 1), tuning);
  convolute(y, n, round_keys_of(code_seed, 2), tuning);
  ExpandRows expand = {aes(), round_keys_of(code_seed, 3), {}, y, noise.data(), n};
  for (unsigned j = 0; j <= kExpanderWeight; ++j) expand.bounds[j] = j * n / kExpanderWeight;
  launch_tiles(expand, ceil_div(n, kExpanderRows));
  device().finish();
}

template <gpu::ComputeDevice Device>
DeviceBlocks<Device> OtDevice<Device>::hash(const Blocks& blocks, std::uint64_t first,
                                            std::uint64_t tag, Block base, Block delta) {
  prepare(blocks);
  const std::lock_guard<std::mutex> lock(mutex_);
  const Blocks out = new_blocks(blocks.size());
  const auto keys = period_keys(base, first, blocks.size());
  const HashTransfers kernel = {aes(), keys->data(), blocks.data(), out.data(), delta, first, tag};
  launch_tiles(kernel, blocks.size());
  device().finish();
  return out;
}

template <gpu::ComputeDevice Device>
Block OtDevice<Device>::chi_sum(const Blocks& leaves, Seed chi_seed, std::uint64_t first) {
  prepare(leaves);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto sum = allocate<std::uint32_t>(kBlockWords);
  device().zero(sum->data(), sizeof(Block));
  const auto keys = round_keys_of(chi_seed);
  const auto factors = allocate<Block>(kChiRow);
  const auto rows = allocate<Block>(ceil_div(first % kChiRow + leaves.size(), kChiRow));
  launch_tiles(ChiFactors{aes(), keys, 0, 0, factors->data()}, factors->size());
  launch_tiles(ChiFactors{aes(), keys, first / kChiRow, 1, rows->data()}, rows->size());
  const ChiSum kernel = {aes(), leaves.data(), first, factors->data(), rows->data(), sum->data()};
  launch_tiles(kernel, leaves.size());
  Block out;
  device().download(&out, sum->data(), sizeof(out));
  device().finish();
  return out;
}

template <gpu::ComputeDevice Device>
void OtDevice<Device>::chi_at(std::span<const std::uint64_t> positions, Seed chi_seed, Block* out) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto own = to_device(positions);
  const auto chi = allocate<Block>(positions.size());
  const ChiAt kernel = {aes(), round_keys_of(chi_seed), own->data(), chi->data()};
  launch_tiles(kernel, positions.size());
  device().download(out, chi->data(), positions.size() * sizeof(Block));
  device().finish();
}

template <gpu::ComputeDevice Device>
void OtDevice<Device>::low_bits(const Blocks& blocks, std::uint8_t* out) {
  prepare(blocks);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto bits = allocate<std::uint8_t>(blocks.size());
  launch(LowBits{{blocks.size()}, blocks.data(), bits->data()});
  device().download(out, bits->data(), blocks.size());
  device().finish();
}

template <gpu::ComputeDevice Device>
DeviceBlocks<Device> OtDevice<Device>::transpose_bits(const std::uint8_t* rows,
                                                      std::size_t row_bytes) {
  constexpr std::size_t kRows = 128;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto own =
      to_device(std::span<const std::uint8_t>(rows, checked_product(kRows, row_bytes)));
  const Blocks out = new_blocks(checked_product(8, row_bytes));
  launch(TransposeBits{{row_bytes}, own->data(), row_bytes, out.data()});
  device().finish();
  return out;
}

}  // namespace nescio::ot
