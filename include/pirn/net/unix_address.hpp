// Addresses of Unix sockets, as values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "pirn/io/error.hpp"

struct sockaddr_storage;

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

class unix_address;
namespace detail {
/// Fills in the kernel's form of the address and returns its length.
std::uint32_t to_native(const unix_address& from, ::sockaddr_storage& to) noexcept;
unix_address from_native(const ::sockaddr_storage& from, std::uint32_t size) noexcept;
}  // namespace detail

/// The address of a Unix socket: a path, an abstract name, or none. By default it has none, as the ends of a pair and
/// clients that were not bound.
class unix_address {
 public:
  /// The longest path or abstract name, in bytes.
  static constexpr std::size_t max_size = 107;

  constexpr unix_address() noexcept = default;
  /// Makes the address of a file. Fails with io_error::bad_syntax if the path is empty or has a zero byte, and with
  /// std::errc::filename_too_long.
  static result<unix_address> path(std::string_view path) noexcept;
  /// Makes an abstract address: a name of any bytes that no file has, and which any process of the network namespace
  /// may use. Fails with io_error::bad_syntax if it is empty, and with std::errc::filename_too_long.
  static result<unix_address> abstract(std::string_view name) noexcept;
  /// Parses "@name" as an abstract address and anything else as a path; fails as `path` and `abstract`.
  static result<unix_address> parse(std::string_view text) noexcept;

  /// Whether it is a path.
  [[nodiscard]] constexpr bool is_path() const noexcept { return size_ != 0 && bytes_[0] != '\0'; }
  /// Whether it is an abstract name.
  [[nodiscard]] constexpr bool is_abstract() const noexcept { return size_ != 0 && bytes_[0] == '\0'; }
  /// Returns the path or the abstract name; empty if there is no address. Valid as long as this object.
  [[nodiscard]] constexpr std::string_view name() const noexcept {
    return std::string_view(bytes_.data(), size_).substr(is_abstract() ? 1 : 0);
  }
  /// Returns a path as a C string, and "" otherwise. Valid as long as this object.
  [[nodiscard]] constexpr const char* c_str() const noexcept { return bytes_.data(); }
  /// Returns the text in the form that `parse` takes; "" for no address. Throws std::bad_alloc.
  [[nodiscard]] std::string to_string() const;

  friend constexpr bool operator==(const unix_address&, const unix_address&) noexcept = default;

 private:
  friend unix_address detail::from_native(const ::sockaddr_storage& from, std::uint32_t size) noexcept;
  friend std::uint32_t detail::to_native(const unix_address& from, ::sockaddr_storage& to) noexcept;

  std::array<char, max_size + 2> bytes_{};  ///< as in sockaddr_un, with zeros behind
  std::uint8_t size_ = 0;                   ///< without the zero that ends a path
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
