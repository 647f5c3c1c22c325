#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace nescio {

/// Whose fault an error is, and so which Python class of `nescio.errors` it becomes.
enum class ErrorKind {
  argument,       ///< the caller of this library passed something impossible
  index,          ///< a row or point that the domain does not have
  malformed_key,  ///< bytes that are not a key at all
  mismatch,       ///< a well-formed key, but for something else
  resource,       ///< the machine would not give memory, threads or randomness
  device,         ///< a device has failed, and does no more work for this process
};

/// The one exception type that the engine throws on purpose.
///
/// `found` and `expected` are filled for mismatches and repeated in the message.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}

  Error(const std::string& what, std::string found, std::string expected)
      : std::runtime_error(what + ": found " + found + ", expected " + expected),
        kind_(ErrorKind::mismatch),
        found_(std::move(found)),
        expected_(std::move(expected)) {}

  ErrorKind kind() const noexcept { return kind_; }
  const std::string& found() const noexcept { return found_; }
  const std::string& expected() const noexcept { return expected_; }

 private:
  ErrorKind kind_;
  std::string found_;
  std::string expected_;
};

}  // namespace nescio
