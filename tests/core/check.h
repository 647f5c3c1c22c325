#pragma once

// A minimal test framework for the engine's tests.

#include <cstdio>
#include <cstdlib>

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                  \
    }                                                                                \
  } while (false)

/// Checks that the expression throws a nescio::Error of that kind.
#define CHECK_THROWS(expression, expected_kind)                                                 \
  do {                                                                                          \
    bool thrown = false;                                                                        \
    try {                                                                                       \
      static_cast<void>(expression);                                                            \
    } catch (const nescio::Error& error) {                                                      \
      thrown = error.kind() == (expected_kind);                                                 \
    }                                                                                           \
    if (!thrown) {                                                                              \
      std::fprintf(stderr, "%s:%d: did not throw " #expected_kind ": %s\n", __FILE__, __LINE__, \
                   #expression);                                                                \
      std::exit(1);                                                                             \
    }                                                                                           \
  } while (false)
