#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

namespace nescio {

/// Threads that share out the numbered tasks of one job at a time.
///
/// The calling thread works too, so a pool of 1 starts no thread. A job that several threads ask
/// for at once waits its turn. After a fork the child's pool starts threads of its own at its first
/// job.
class ThreadPool {
 public:
  /// `threads` workers, the caller among them; 0 takes every processor this process may use.
  /// Throws Error(argument) above kMostThreads, Error(resource) if a thread cannot be started.
  explicit ThreadPool(unsigned threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  static constexpr unsigned kMostThreads = 4096;

  unsigned threads() const noexcept { return threads_; }

  /// What a task is told: its number, and which worker (below `threads()`) runs it.
  using Task = std::function<void(std::size_t task, unsigned worker)>;

  /// Runs tasks 0..tasks-1, each once, and returns when all are done. The first exception that a
  /// task throws is thrown here; tasks not yet begun are then left out. Throws Error(resource) if a
  /// forked child cannot start its threads.
  void run(std::size_t tasks, const Task& task);

 private:
  struct Crew;
  Crew& own_crew();

  unsigned threads_;
  std::atomic<Crew*> crew_;  // owned; atomic for who replace it first thing after a fork
};

/// Processors that this process may run on (its affinity mask, not the machine's total).
unsigned available_processors() noexcept;

}  // namespace nescio
