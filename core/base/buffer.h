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

namespace nescio {

/// Overwrites memory that held secrets; the compiler may not leave it out.
inline void wipe(void* data, std::size_t bytes) noexcept {
  std::memset(data, 0, bytes);
  asm volatile("" : : "r"(data) : "memory");
}

/// An owned array of trivial elements on a cache-line boundary, not initialised.
///
/// Throws Error(resource) when the memory is not to be had, naming the amount.
template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  static constexpr std::size_t kAlignment = 64;

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
    if (size > SIZE_MAX / sizeof(T) - kAlignment) throw too_large(size);
    const std::size_t bytes = (size * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    void* p = std::aligned_alloc(kAlignment, bytes == 0 ? kAlignment : bytes);
    if (p == nullptr) throw too_large(size);
    return static_cast<T*>(p);
  }

  static Error too_large(std::size_t size) {
    return Error(ErrorKind::resource, "out of memory: " + std::to_string(size) + " x " +
                                          std::to_string(sizeof(T)) + " bytes were asked for");
  }

  std::unique_ptr<T[], Free> data_;
  std::size_t size_ = 0;
};

/// A Buffer that is overwritten before its memory is given back.
template <class T>
class SecretBuffer : public Buffer<T> {
 public:
  using Buffer<T>::Buffer;
  SecretBuffer(SecretBuffer&&) noexcept = default;
  SecretBuffer& operator=(SecretBuffer&&) noexcept = default;
  ~SecretBuffer() {
    if (this->data() != nullptr) wipe(this->data(), this->size() * sizeof(T));
  }
};

}  // namespace nescio
