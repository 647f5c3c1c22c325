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
  constexpr std::size_t kMost = 256;  // getentropy's own limit for one call
  auto* to = static_cast<unsigned char*>(out);
  while (bytes > 0) {
    const std::size_t part = std::min(bytes, kMost);
    if (getentropy(to, part) != 0) {
      throw Error(ErrorKind::resource, std::string("the operating system gave no random bytes: ") +
                                           std::strerror(errno));
    }
    to += part;
    bytes -= part;
  }
}

}  // namespace nescio
