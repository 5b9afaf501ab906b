// Socket activation: reads and removes the environment variables, and takes over the descriptors.
#include "pirn/net/expert/inherited_sockets.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>

#include "detail/system.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {

constexpr int first_inherited = 3;
constexpr int max_inherited = 4096;

/// Returns and removes a variable.
std::optional<std::string> take_variable(const char* name) {
  const char* const found = ::getenv(name);
  if (found == nullptr) {
    return std::nullopt;
  }
  std::string value = found;
  ::unsetenv(name);
  return value;
}

std::optional<int> number_in(std::string_view text) noexcept {
  int value = 0;
  const char* const begin = text.data();
  const auto [stopped, error] = std::from_chars(begin, begin + text.size(), value);
  return error == std::errc{} && stopped == begin + text.size() && value >= 0 ? std::optional(value) : std::nullopt;
}

std::vector<std::string> split(std::string_view names) {
  std::vector<std::string> all;
  for (;;) {
    const std::size_t colon = names.find(':');
    all.emplace_back(names.substr(0, colon));
    if (colon == names.npos) {
      return all;
    }
    names.remove_prefix(colon + 1);
  }
}

}  // namespace

result<std::vector<inherited_socket>> take_inherited_sockets() {
  const auto process = take_variable("LISTEN_PID");
  const auto descriptors = take_variable("LISTEN_FDS");
  const auto names = take_variable("LISTEN_FDNAMES");
  std::vector<inherited_socket> all;
  if (!process || !descriptors) {
    return all;
  }
  const auto meant = number_in(*process);
  const auto count = number_in(*descriptors);
  if (!meant || !count || *count > max_inherited) {
    return fail(io_error::bad_syntax);
  }
  if (*meant != ::getpid()) {
    return all;
  }
  const std::vector<std::string> named =
      names && *count > 0 ? split(*names) : std::vector<std::string>(static_cast<std::size_t>(*count), "unknown");
  all.reserve(named.size());
  std::error_code error;  // the first one: no descriptor is passed over, since no variable tells of it any more
  for (int i = 0; i < *count; ++i) {
    if (platform::system::fcntl(first_inherited + i, F_SETFD, FD_CLOEXEC) < 0 && !error) {
      error = {errno, std::system_category()};
    }
  }
  if (named.size() != static_cast<std::size_t>(*count)) {
    return fail(io_error::bad_syntax);
  }
  if (error) {
    return fail(error);
  }
  int native = first_inherited;
  for (const std::string& name : named) {
    if (auto taken = descriptor::adopt(native++)) {
      all.push_back({name, std::move(*taken)});
    } else if (!error) {
      error = taken.error();
    }
  }
  if (error) {
    return fail(error);
  }
  return all;
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
