#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace nescio {

/// The cause of an error, which decides its Python class in `nescio.errors`.
enum class ErrorKind {
  argument,           ///< an argument is invalid
  index,              ///< a row or point is outside the domain
  malformed_key,      ///< bytes are not a valid key
  malformed_message,  ///< bytes are not a valid message of the other party
  mismatch,           ///< a valid key does not match the table or the other keys
  resource,           ///< memory, threads or randomness are not available
  device,             ///< a device has failed; it is unusable until the process restarts
};

/// The only exception type that the engine throws deliberately.
///
/// `found` and `expected` are set for mismatches and are also part of the message.
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
