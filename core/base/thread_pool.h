#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

namespace nescio {

/// Threads that share the numbered tasks of one job at a time.
///
/// The calling thread works too, so a pool of 1 starts no thread. Jobs of several callers run one
/// after the other. After a fork the child's pool starts its own threads at its first job.
class ThreadPool {
 public:
  /// Starts a pool of `threads` workers, including the caller; 0 means one per processor that this
  /// process may use. Throws Error(argument) above kMaxThreads, Error(resource) if a thread cannot be
  /// started.
  explicit ThreadPool(unsigned threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  static constexpr unsigned kMaxThreads = 4096;

  unsigned threads() const noexcept { return threads_; }

  /// A task: called with its number and with the worker (below `threads()`) that runs it.
  using Task = std::function<void(std::size_t task, unsigned worker)>;

  /// Runs tasks 0..tasks-1, each once, and returns when all are done. Rethrows the first exception of
  /// a task, after which no further task starts. Throws Error(resource) if a forked child cannot start
  /// its threads.
  void run(std::size_t tasks, const Task& task);

 private:
  struct Workers;
  Workers& own_workers();

  unsigned threads_;
  std::atomic<Workers*>
      workers_;  // owned; atomic because several threads may replace it after a fork
};

/// Returns the number of processors that this process may run on (its affinity mask).
unsigned available_processors() noexcept;

}  // namespace nescio
