// Makes and prints addresses of Unix sockets, and converts them to and from the kernel's form.
#include "pirn/net/unix_address.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

static_assert(unix_address::max_size + 1 == sizeof(::sockaddr_un::sun_path));

result<unix_address> unix_address::path(std::string_view path) noexcept {
  if (path.empty() || path.find('\0') != path.npos) {
    return fail(io_error::bad_syntax);
  }
  if (path.size() > max_size) {
    return fail(std::make_error_code(std::errc::filename_too_long));
  }
  unix_address made;
  std::ranges::copy(path, made.bytes_.begin());
  made.size_ = static_cast<std::uint8_t>(path.size());
  return made;
}

result<unix_address> unix_address::abstract(std::string_view name) noexcept {
  if (name.empty()) {
    return fail(io_error::bad_syntax);
  }
  if (name.size() > max_size) {
    return fail(std::make_error_code(std::errc::filename_too_long));
  }
  unix_address made;
  std::ranges::copy(name, made.bytes_.begin() + 1);
  made.size_ = static_cast<std::uint8_t>(name.size() + 1);
  return made;
}

result<unix_address> unix_address::parse(std::string_view text) noexcept {
  return text.starts_with('@') ? abstract(text.substr(1)) : path(text);
}

std::string unix_address::to_string() const { return (is_abstract() ? "@" : "") + std::string(name()); }

namespace detail {

std::uint32_t to_native(const unix_address& from, ::sockaddr_storage& to) noexcept {
  auto& native = reinterpret_cast<::sockaddr_un&>(to);
  native.sun_family = AF_UNIX;
  std::memcpy(native.sun_path, from.bytes_.data(), sizeof native.sun_path);
  const std::size_t size = from.is_path() ? std::min<std::size_t>(from.size_ + 1u, sizeof native.sun_path) : from.size_;
  return static_cast<std::uint32_t>(offsetof(::sockaddr_un, sun_path) + size);
}

unix_address from_native(const ::sockaddr_storage& from, std::uint32_t size) noexcept {
  unix_address made;
  if (size > offsetof(::sockaddr_un, sun_path)) {
    const auto& native = reinterpret_cast<const ::sockaddr_un&>(from);
    std::size_t length = std::min<std::size_t>(size - offsetof(::sockaddr_un, sun_path), sizeof native.sun_path);
    if (native.sun_path[0] != '\0') {
      length = ::strnlen(native.sun_path, length);
    }
    std::memcpy(made.bytes_.data(), native.sun_path, length);
    made.size_ = static_cast<std::uint8_t>(length);
  }
  return made;
}

}  // namespace detail

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
