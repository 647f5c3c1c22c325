#include "bindings/errors.h"

#include "base/error.h"
#include "bindings/bindings.h"

namespace nescio::bindings {
namespace {

const char* class_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::argument: return "ArgumentError";
    case ErrorKind::index: return "IndexRangeError";
    case ErrorKind::malformed_key: return "MalformedKeyError";
    case ErrorKind::malformed_message: return "MalformedMessageError";
    case ErrorKind::mismatch: return "MismatchError";
    case ErrorKind::resource: return "ResourceError";
    case ErrorKind::device: return "DeviceFailedError";
  }
  return "NescioError";
}

/// Raises the class of nescio.errors for the engine's error.
void raise(const Error& error) {
  const nb::object type = nb::module_::import_("nescio.errors").attr(class_name(error.kind()));
  if (error.kind() == ErrorKind::mismatch) {
    const nb::object value = type(nb::str(error.what()), nb::arg("found") = error.found().c_str(),
                                  nb::arg("expected") = error.expected().c_str());
    PyErr_SetObject(type.ptr(), value.ptr());
  } else {
    PyErr_SetString(type.ptr(), error.what());
  }
}

}  // namespace

void translate_errors() {
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const nescio::Error& error) {
      raise(error);
    }
  });
}

}  // namespace nescio::bindings
