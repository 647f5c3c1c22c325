#include "base/thread_pool.h"

#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"

#if defined(__linux__)
#include <sched.h>
#endif

namespace nescio {
namespace {

/// Polls of a job's start or end before a thread sleeps: about ten microseconds. Waking a sleeping
/// thread takes longer than one query to a small table.
constexpr int kPolls = 500;

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

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

/// The worker threads of one process, and their current job.
struct ThreadPool::Workers {
  explicit Workers(unsigned threads) {
    try {
      for (unsigned worker = 1; worker < threads; ++worker) {
        spawned.emplace_back(&Workers::work, this, worker);
      }
    } catch (const std::exception& e) {
      stop();
      throw Error(ErrorKind::resource,
                  "cannot start " + std::to_string(threads) + " threads: " + e.what());
    }
  }

  void stop() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    job_posted.notify_all();
    for (std::thread& thread : spawned) thread.join();
    spawned.clear();
  }

  void run(std::size_t count, const Task& work) {
    {
      const std::lock_guard lock(mutex);
      task = &work;
      tasks = count;
      next = 0;
      failure = nullptr;
      working = static_cast<unsigned>(spawned.size());
      ++job;
    }
    job_posted.notify_all();
    take_tasks(0);
    for (int poll = 0; poll < kPolls && working != 0; ++poll) pause_briefly();
    std::unique_lock lock(mutex);
    workers_done.wait(lock, [&] { return working == 0; });
    if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
  }

  std::mutex job_lock;  // held during a job
  const pid_t owner = getpid();

 private:
  void work(unsigned worker) {
    std::uint64_t seen = 0;
    for (;;) {
      for (int poll = 0; poll < kPolls && job == seen; ++poll) pause_briefly();
      {
        std::unique_lock lock(mutex);
        job_posted.wait(lock, [&] { return stopping || job != seen; });
        if (stopping) return;
        seen = job;
      }
      take_tasks(worker);
      const std::lock_guard lock(mutex);
      if (--working == 0) workers_done.notify_one();
    }
  }

  void take_tasks(unsigned worker) {
    try {
      for (std::size_t i = next++; i < tasks; i = next++) (*task)(i, worker);
    } catch (...) {
      next = tasks;
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  }

  std::mutex mutex;  // guards the members below; the atomics may be read without it
  std::condition_variable job_posted;
  std::condition_variable workers_done;
  std::atomic<std::uint64_t> job = 0;
  std::atomic<unsigned> working = 0;
  bool stopping = false;
  const Task* task = nullptr;
  std::size_t tasks = 0;
  std::exception_ptr failure;

  std::atomic<std::size_t> next = 0;
  std::vector<std::thread> spawned;
};

ThreadPool::ThreadPool(unsigned threads)
    : threads_(threads == 0 ? available_processors() : threads), workers_(nullptr) {
  if (threads_ > kMaxThreads) {
    throw Error(ErrorKind::argument, "threads: found " + std::to_string(threads_) +
                                         ", expected at most " + std::to_string(kMaxThreads));
  }
  workers_ = std::make_unique<Workers>(threads_).release();
}

ThreadPool::~ThreadPool() {
  // In a forked child the parent's threads do not exist and cannot be joined. Their records, and the
  // locks that they may hold, are leaked.
  if (workers_.load()->owner != getpid()) return;
  const std::unique_ptr<Workers> workers(workers_.load());
  workers->stop();
}

/// Returns this process's workers. After a fork it makes new ones; of several threads, the first one's
/// are used.
ThreadPool::Workers& ThreadPool::own_workers() {
  Workers* workers = workers_;
  if (workers->owner == getpid()) return *workers;
  auto fresh = std::make_unique<Workers>(threads_);
  if (workers_.compare_exchange_strong(workers, fresh.get())) return *fresh.release();
  fresh->stop();
  return *workers;
}

void ThreadPool::run(std::size_t tasks, const Task& task) {
  Workers& workers = own_workers();
  const std::lock_guard lock(workers.job_lock);
  if (tasks > 1 && threads_ > 1) {
    workers.run(tasks, task);
  } else {
    for (std::size_t i = 0; i < tasks; ++i) task(i, 0);
  }
}

}  // namespace nescio
