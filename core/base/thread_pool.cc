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

/// Looks at a job's end or beginning so many times before going to sleep: some ten microseconds. To
/// wake a sleeping thread takes longer than to answer one query to a small table.
constexpr int kLooks = 500;

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

/// The workers of one process, and the job that they are at.
struct ThreadPool::Crew {
  explicit Crew(unsigned threads) {
    try {
      for (unsigned worker = 1; worker < threads; ++worker) {
        workers.emplace_back(&Crew::work, this, worker);
      }
    } catch (const std::exception& e) {
      stop();
      throw Error(ErrorKind::resource, "the system would not start " + std::to_string(threads) +
                                           " threads: " + e.what());
    }
  }

  void stop() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    job_posted.notify_all();
    for (std::thread& worker : workers) worker.join();
    workers.clear();
  }

  void run(std::size_t count, const Task& work) {
    {
      const std::lock_guard lock(mutex);
      task = &work;
      tasks = count;
      next = 0;
      failure = nullptr;
      working = static_cast<unsigned>(workers.size());
      ++job;
    }
    job_posted.notify_all();
    take_tasks(0);
    for (int look = 0; look < kLooks && working != 0; ++look) pause_briefly();
    std::unique_lock lock(mutex);
    workers_done.wait(lock, [&] { return working == 0; });
    if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
  }

  std::mutex turn;  // held for the length of a job
  const pid_t owner = getpid();

 private:
  void work(unsigned worker) {
    std::uint64_t seen = 0;
    for (;;) {
      for (int look = 0; look < kLooks && job == seen; ++look) pause_briefly();
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

  std::mutex mutex;  // guards what follows; the atomics may be looked at without it
  std::condition_variable job_posted;
  std::condition_variable workers_done;
  std::atomic<std::uint64_t> job = 0;
  std::atomic<unsigned> working = 0;
  bool stopping = false;
  const Task* task = nullptr;
  std::size_t tasks = 0;
  std::exception_ptr failure;

  std::atomic<std::size_t> next = 0;
  std::vector<std::thread> workers;
};

ThreadPool::ThreadPool(unsigned threads)
    : threads_(threads == 0 ? available_processors() : threads), crew_(nullptr) {
  if (threads_ > kMostThreads) {
    throw Error(ErrorKind::argument, "threads: " + std::to_string(threads_) +
                                         " were asked for, at most " +
                                         std::to_string(kMostThreads) + " are allowed");
  }
  crew_ = std::make_unique<Crew>(threads_).release();
}

ThreadPool::~ThreadPool() {
  // In a forked child the parent's workers do not exist and cannot be joined: their records, and
  // the locks that they may hold, are abandoned.
  if (crew_.load()->owner != getpid()) return;
  const std::unique_ptr<Crew> crew(crew_.load());
  crew->stop();
}

/// This process's crew; after a fork, a new one, of which the first of several threads wins.
ThreadPool::Crew& ThreadPool::own_crew() {
  Crew* crew = crew_;
  if (crew->owner == getpid()) return *crew;
  auto fresh = std::make_unique<Crew>(threads_);
  if (crew_.compare_exchange_strong(crew, fresh.get())) return *fresh.release();
  fresh->stop();
  return *crew;
}

void ThreadPool::run(std::size_t tasks, const Task& task) {
  Crew& crew = own_crew();
  const std::lock_guard turn(crew.turn);
  if (tasks > 1 && threads_ > 1) {
    crew.run(tasks, task);
  } else {
    for (std::size_t i = 0; i < tasks; ++i) task(i, 0);
  }
}

}  // namespace nescio
