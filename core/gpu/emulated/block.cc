#include "gpu/emulated/block.h"

#include <ucontext.h>

#include <bit>
#include <cstdlib>
#include <exception>
#include <stdexcept>

#include "base/buffer.h"

#if defined(__SANITIZE_ADDRESS__)
#define NESCIO_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NESCIO_ASAN 1
#endif
#endif
#if defined(NESCIO_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif

namespace nescio::gpu {
namespace {

constexpr std::size_t kStackBytes = 128 << 10;

}  // namespace

/// A fiber: its stack and its saved registers.
struct Fiber {
  ucontext_t context{};
  Buffer<std::uint8_t> stack{kStackBytes};
  bool done = false;
};

struct FiberTeam::State {
  State(unsigned count, std::size_t shared_bytes, ThreadOrder of_threads)
      : order(of_threads),
        fibers(count),
        collectives(count),
        messages(count),
        answers(count),
        memory(shared_bytes + 1) {}

  unsigned threads() const { return static_cast<unsigned>(fibers.size()); }
  unsigned at(unsigned turn) const {
    return order == ThreadOrder::forwards ? turn : threads() - 1 - turn;
  }

  // The switches to a fiber and back, with the calls that the address sanitizer needs.
  void enter(unsigned thread) {
    running = thread;
    Fiber& fiber = fibers[thread];
#if defined(NESCIO_ASAN)
    __sanitizer_start_switch_fiber(&fake_stack, fiber.stack.data(), kStackBytes);
#endif
    swapcontext(&scheduler, &fiber.context);
#if defined(NESCIO_ASAN)
    __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
  }

  void leave(unsigned thread, bool forever) {
#if defined(NESCIO_ASAN)
    void* own = nullptr;
    __sanitizer_start_switch_fiber(forever ? nullptr : &own, main_stack, main_stack_bytes);
#endif
    static_cast<void>(forever);
    swapcontext(&fibers[thread].context, &scheduler);
#if defined(NESCIO_ASAN)
    __sanitizer_finish_switch_fiber(own, nullptr, nullptr);
#endif
  }

  static void body(unsigned high, unsigned low) {
    auto* self = reinterpret_cast<State*>((std::uint64_t{high} << 32) | low);
    const unsigned thread = self->running;
#if defined(NESCIO_ASAN)
    __sanitizer_finish_switch_fiber(nullptr, &self->main_stack, &self->main_stack_bytes);
#endif
    try {
      EmulatedBlock block(self->team, self->block_at, thread);
      (*self->work)(block);
    } catch (...) {
      self->error = std::current_exception();
    }
    self->fibers[thread].done = true;
    self->leave(thread, true);
  }

  void start(unsigned thread) {
    Fiber& fiber = fibers[thread];
    fiber.done = false;
    collectives[thread] = Collective::none;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = nullptr;
    const auto self = reinterpret_cast<std::uint64_t>(this);
    makecontext(&fiber.context, reinterpret_cast<void (*)()>(&State::body), 2,
                static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
  }

  ThreadOrder order;
  FiberTeam* team = nullptr;
  Grid block_at;
  const std::function<void(EmulatedBlock&)>* work = nullptr;
  unsigned running = 0;
  ucontext_t scheduler{};
  std::vector<Fiber> fibers;
  std::vector<Collective> collectives;
  std::vector<Message> messages;
  std::vector<Message> answers;
  Buffer<std::byte> memory;
  std::exception_ptr error;
#if defined(NESCIO_ASAN)
  void* fake_stack = nullptr;
  const void* main_stack = nullptr;
  std::size_t main_stack_bytes = 0;
#endif
};

FiberTeam::FiberTeam(unsigned threads, std::size_t shared_bytes, ThreadOrder order)
    : state_(std::make_unique<State>(threads, shared_bytes, order)) {
  state_->team = this;
  shared_ = state_->memory.data();
}

FiberTeam::~FiberTeam() = default;

void FiberTeam::run(Grid at, const std::function<void(EmulatedBlock&)>& work) {
  State& s = *state_;
  s.block_at = at;
  s.work = &work;
  s.error = nullptr;
  std::memset(shared_, 0xA5, s.memory.size());  // a GPU's is not initialized either
  for (unsigned i = 0; i < s.threads(); ++i) s.start(i);
  for (bool going = true; going;) {
    for (unsigned turn = 0; turn < s.threads(); ++turn) {
      const unsigned thread = s.at(turn);
      if (s.fibers[thread].done || s.collectives[thread] != Collective::none) continue;
      s.enter(thread);
      if (s.error) std::rethrow_exception(s.error);
    }
    going = release();
  }
}

/// Completes the collectives that all of their threads have reached. Returns false when every thread
/// is done.
bool FiberTeam::release() {
  const State& s = *state_;
  bool released = false, all_done = true, all_here = true;
  for (unsigned warp = 0; warp < s.threads() / kWarp; ++warp) released |= release_warp(warp);
  for (unsigned i = 0; i < s.threads(); ++i) {
    all_done = all_done && s.fibers[i].done;
    all_here = all_here && !s.fibers[i].done && s.collectives[i] == Collective::block;
  }
  if (all_done) return false;
  if (all_here) {
    for (Collective& collective : state_->collectives) collective = Collective::none;
  } else if (!released) {
    throw std::logic_error("threads of a block wait for threads that never arrive");
  }
  return true;
}

bool FiberTeam::release_warp(unsigned warp) {
  State& s = *state_;
  const unsigned first = warp * kWarp;
  const Collective collective = s.collectives[first];
  if (collective == Collective::none || collective == Collective::block) return false;
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if (s.fibers[first + lane].done || s.collectives[first + lane] != collective) return false;
  }
  exchange(warp, collective);
  for (unsigned lane = 0; lane < kWarp; ++lane) s.collectives[first + lane] = Collective::none;
  return true;
}

namespace {

std::uint32_t count_and(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  return c + static_cast<std::uint32_t>(std::popcount(a & b));
}

}  // namespace

void FiberTeam::exchange(unsigned warp, Collective collective) {
  const Message* in = &state_->messages[warp * kWarp];
  Message* out = &state_->answers[warp * kWarp];
  std::uint32_t votes = 0;
  for (unsigned lane = 0; lane < kWarp; ++lane) votes |= (in[lane].a[0] & 1) << lane;
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if (collective == Collective::shuffle) out[lane].a[0] = in[lane ^ in[lane].mask].a[0];
    if (collective == Collective::ballot) out[lane].a[0] = votes;
    if (collective == Collective::words) {
      for (unsigned i = 0; i < 4; ++i) {
        out[lane].a[i] = in[8 * i + lane / 4].quad->w[lane % 4];
      }
    }
    if (collective != Collective::bits && collective != Collective::bytes) continue;
    const auto multiply = collective == Collective::bits ? count_and : EmulatedBlock::dot_bytes;
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
      std::uint32_t sum = in[lane].c[i];
      for (unsigned t = 0; t < 4; ++t) {
        const Message& a = in[4 * (row % 8) + t];
        const Message& b = in[4 * column + t];
        sum = multiply(a.a[row / 8], b.b[0], sum);
        sum = multiply(a.a[2 + row / 8], b.b[1], sum);
      }
      out[lane].c[i] = sum;
    }
  }
}

const FiberTeam::Message& FiberTeam::join(unsigned thread, Collective collective,
                                          const Message& message) {
  state_->messages[thread] = message;
  state_->collectives[thread] = collective;
  state_->leave(thread, false);
  return state_->answers[thread];
}

std::byte* EmulatedBlock::shared() const { return team_->shared(); }

void EmulatedBlock::sync() { team_->join(thread_, FiberTeam::Collective::block, {}); }

std::uint32_t EmulatedBlock::shuffle_xor(std::uint32_t value, unsigned mask) {
  return team_->join(thread_, FiberTeam::Collective::shuffle, {{value}, {}, {}, mask, nullptr})
      .a[0];
}

std::uint32_t EmulatedBlock::ballot(bool bit) {
  return team_->join(thread_, FiberTeam::Collective::ballot, {{bit ? 1u : 0u}, {}, {}, 0, nullptr})
      .a[0];
}

void EmulatedBlock::load_words(std::uint32_t (&out)[4], const Quad* quad) {
  const FiberTeam::Message message{{}, {}, {}, 0, quad};
  std::memcpy(out, team_->join(thread_, FiberTeam::Collective::words, message).a, sizeof(out));
}

void EmulatedBlock::multiply_bits(std::uint32_t (&c)[4], const std::uint32_t (&a)[4],
                                  const std::uint32_t (&b)[2]) {
  FiberTeam::Message message{};
  std::memcpy(message.a, a, sizeof(a));
  std::memcpy(message.b, b, sizeof(b));
  std::memcpy(message.c, c, sizeof(c));
  std::memcpy(c, team_->join(thread_, FiberTeam::Collective::bits, message).c, sizeof(c));
}

void EmulatedBlock::multiply_bytes(std::uint32_t (&c)[4], const std::uint32_t (&a)[4],
                                   const std::uint32_t (&b)[2]) {
  FiberTeam::Message message{};
  std::memcpy(message.a, a, sizeof(a));
  std::memcpy(message.b, b, sizeof(b));
  std::memcpy(message.c, c, sizeof(c));
  std::memcpy(c, team_->join(thread_, FiberTeam::Collective::bytes, message).c, sizeof(c));
}

std::uint32_t EmulatedBlock::dot_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  for (unsigned i = 0; i < 32; i += 8) c += ((a >> i) & 0xFF) * ((b >> i) & 0xFF);
  return c;
}

void EmulatedBlock::copy_async(void* to, const void* from) { open_.push_back({to, from}); }

void EmulatedBlock::commit_copies() {
  pending_.push_back(std::move(open_));
  open_.clear();
}

void EmulatedBlock::finish_copies(std::size_t newest) {
  while (pending_.size() > newest) {
    for (const Copy& copy : pending_.front()) std::memcpy(copy.to, copy.from, sizeof(Quad));
    pending_.erase(pending_.begin());
  }
}

}  // namespace nescio::gpu
