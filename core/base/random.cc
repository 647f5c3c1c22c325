#include "base/random.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/error.h"

#if defined(__APPLE__)
#include <sys/random.h>
#endif

namespace nescio {

void random_bytes(void* out, std::size_t bytes) {
  constexpr std::size_t kMaxCall = 256;  // getentropy's limit per call
  auto* to = static_cast<unsigned char*>(out);
  while (bytes > 0) {
    const std::size_t part = std::min(bytes, kMaxCall);
    if (getentropy(to, part) != 0) {
      throw Error(ErrorKind::resource,
                  std::string("cannot get random bytes from the operating system: ") +
                      std::strerror(errno));
    }
    to += part;
    bytes -= part;
  }
}

}  // namespace nescio
