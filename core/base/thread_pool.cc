#include "base/thread_pool.h"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.h"

#if defined(__linux__)
#include <sched.h>
#endif

namespace nescio {

unsigned available_processors() noexcept {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    const int count = CPU_COUNT(&set);
    if (count > 0) return static_cast<unsigned>(count);
  }
#endif
  const unsigned count = std::thread::hardware_concurrency();
  return count == 0 ? 1 : count;
}

/// One job: workers take task numbers from `next` until none is left.
struct ThreadPool::State {
  std::mutex job_turn;  // held for the length of a job
  pid_t owner = getpid();

  std::mutex mutex;  // guards what follows
  std::condition_variable job_posted;
  std::condition_variable workers_done;
  std::uint64_t job = 0;
  unsigned working = 0;
  bool stopping = false;
  const Task* task = nullptr;
  std::size_t tasks = 0;
  std::exception_ptr failure;

  std::atomic<std::size_t> next = 0;
  std::vector<std::thread> workers;

  void take_tasks(unsigned worker) {
    try {
      for (std::size_t i = next++; i < tasks; i = next++) (*task)(i, worker);
    } catch (...) {
      next = tasks;
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  }

  void work(unsigned worker) {
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex);
    for (;;) {
      job_posted.wait(lock, [&] { return stopping || job != seen; });
      if (stopping) return;
      seen = job;
      lock.unlock();
      take_tasks(worker);
      lock.lock();
      if (--working == 0) workers_done.notify_one();
    }
  }

  void stop() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    job_posted.notify_all();
    for (std::thread& worker : workers) worker.join();
  }
};

ThreadPool::ThreadPool(unsigned threads)
    : threads_(threads == 0 ? available_processors() : threads) {
  if (threads_ > kMostThreads) {
    throw Error(ErrorKind::argument, "threads: " + std::to_string(threads_) +
                                         " were asked for, at most " +
                                         std::to_string(kMostThreads) + " are allowed");
  }
  start_workers();
}

ThreadPool::~ThreadPool() {
  // In a forked child the workers do not exist and cannot be joined: their records are abandoned.
  if (state_->owner == getpid()) {
    state_->stop();
  } else {
    static_cast<void>(state_.release());
  }
}

void ThreadPool::start_workers() {
  state_ = std::make_unique<State>();
  try {
    for (unsigned worker = 1; worker < threads_; ++worker) {
      state_->workers.emplace_back(&State::work, state_.get(), worker);
    }
  } catch (const std::system_error& e) {
    state_->stop();
    throw Error(ErrorKind::resource,
                "the system would not start " + std::to_string(threads_) + " threads: " + e.what());
  }
}

void ThreadPool::run(std::size_t tasks, const Task& task) {
  if (state_->owner != getpid()) {
    static_cast<void>(state_.release());
    start_workers();
  }
  State& s = *state_;
  const std::lock_guard turn(s.job_turn);
  if (tasks <= 1 || threads_ == 1) {
    for (std::size_t i = 0; i < tasks; ++i) task(i, 0);
    return;
  }
  {
    const std::lock_guard lock(s.mutex);
    s.task = &task;
    s.tasks = tasks;
    s.next = 0;
    s.failure = nullptr;
    s.working = threads_ - 1;
    ++s.job;
  }
  s.job_posted.notify_all();
  s.take_tasks(0);
  std::unique_lock lock(s.mutex);
  s.workers_done.wait(lock, [&] { return s.working == 0; });
  if (s.failure) std::rethrow_exception(s.failure);
}

}  // namespace nescio
