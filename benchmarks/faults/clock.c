/* A wall clock that jumps: LD_PRELOAD this library, and write seconds to the file FAULTS_CLOCK.
 *
 * Clocks that count from the start of the machine, which timeouts use, stay what they are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static const volatile long long *offset(void) {
  static const volatile long long *shared;
  const char *path = getenv("FAULTS_CLOCK");
  if (shared == NULL && path != NULL) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    void *page = mmap(NULL, sizeof(long long), PROT_READ, MAP_SHARED, file, 0);
    if (page == MAP_FAILED) abort();
    shared = page;
  }
  return shared;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (real == NULL) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(clock, now);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += *offset();
  return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec exact;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &exact);
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *result) {
  struct timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  if (result != NULL) *result = exact.tv_sec;
  return exact.tv_sec;
}
