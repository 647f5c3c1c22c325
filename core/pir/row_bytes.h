#pragma once

#include <cstddef>
#include <type_traits>

namespace nescio::pir {

/// Calls `use` with the bytes of a row, as a constant for frequent sizes: copies of constant size are
/// one move or two.
template <class Use>
void with_row_bytes(std::size_t row_bytes, Use use) {
  switch (row_bytes) {
    case 1: return use(std::integral_constant<std::size_t, 1>{});
    case 2: return use(std::integral_constant<std::size_t, 2>{});
    case 4: return use(std::integral_constant<std::size_t, 4>{});
    case 8: return use(std::integral_constant<std::size_t, 8>{});
    case 16: return use(std::integral_constant<std::size_t, 16>{});
    case 32: return use(std::integral_constant<std::size_t, 32>{});
    default: return use(row_bytes);
  }
}

}  // namespace nescio::pir
