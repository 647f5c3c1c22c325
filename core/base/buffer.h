#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <type_traits>

#include "base/error.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace nescio {

/// Overwrites memory that held secrets. The compiler cannot remove the writes.
inline void wipe(void* data, std::size_t bytes) noexcept {
  std::memset(data, 0, bytes);
  asm volatile("" : : "r"(data) : "memory");
}

/// An owned, uninitialized array of trivial elements, aligned to a cache line.
///
/// Large arrays use huge pages: a pass over a table would otherwise miss the TLB at every page. Throws
/// Error(resource) with the requested size if the allocation fails.
template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  static constexpr std::size_t kAlignment = 64;
  static constexpr std::size_t kHugePage = 2 << 20;
  static constexpr std::size_t kLarge = 2 * kHugePage;

  Buffer() = default;
  explicit Buffer(std::size_t size) : data_(allocate(size)), size_(size) {}

  T* data() noexcept { return data_.get(); }
  const T* data() const noexcept { return data_.get(); }
  std::size_t size() const noexcept { return size_; }
  T& operator[](std::size_t i) noexcept { return data_[i]; }
  const T& operator[](std::size_t i) const noexcept { return data_[i]; }
  operator std::span<T>() noexcept { return {data(), size_}; }
  operator std::span<const T>() const noexcept { return {data(), size_}; }

 private:
  struct Free {
    void operator()(T* p) const noexcept { std::free(p); }
  };

  static T* allocate(std::size_t size) {
    if (size > (SIZE_MAX - 2 * kHugePage) / sizeof(T)) throw too_large(size);
    const std::size_t wanted = size * sizeof(T);
    const std::size_t alignment = wanted >= kLarge ? kHugePage : kAlignment;
    const std::size_t bytes = (wanted / alignment + 1) * alignment;
    void* p = std::aligned_alloc(alignment, bytes);
    if (p == nullptr) throw too_large(size);
#if defined(__linux__)
    if (wanted >= kLarge) madvise(p, bytes, MADV_HUGEPAGE);
#endif
    return static_cast<T*>(p);
  }

  static Error too_large(std::size_t size) {
    return Error(ErrorKind::resource, "out of memory: requested " + std::to_string(size) + " x " +
                                          std::to_string(sizeof(T)) + " bytes");
  }

  std::unique_ptr<T[], Free> data_;
  std::size_t size_ = 0;
};

/// Returns a * b. Throws Error(resource) if the product overflows.
inline std::size_t checked_product(std::size_t a, std::size_t b) {
  std::size_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    throw Error(ErrorKind::resource, "out of memory: requested " + std::to_string(a) + " x " +
                                         std::to_string(b) + " bytes");
  }
  return product;
}

/// A Buffer that is overwritten before its memory is released.
template <class T>
class SecretBuffer : public Buffer<T> {
 public:
  using Buffer<T>::Buffer;
  SecretBuffer(const SecretBuffer&) = delete;
  SecretBuffer& operator=(const SecretBuffer&) = delete;
  ~SecretBuffer() {
    if (this->data() != nullptr) wipe(this->data(), this->size() * sizeof(T));
  }
};

}  // namespace nescio
