// Implements look-ups by the C library on a thread of the blocking pool.
#include "net/resolver/system_look_up.hpp"

#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>

#include "pirn/fiber/blocking.hpp"
#include "pirn/fiber/fiber.hpp"
#include "pirn/io/error.hpp"
#include "pirn/sync/event.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

constexpr std::size_t max_addresses = 128;

/// Outlives a caller that gives up.
struct system_look_up {
  explicit system_look_up(const std::string& wanted) : host(wanted) {}
  const std::string host;
  std::vector<ip_address> found;
  std::error_code error;
  event done;
};

std::error_code error_of(int code, int number) noexcept {
  switch (code) {
    case EAI_NONAME:
      return io_error::name_not_found;
    case EAI_NODATA:
    case EAI_ADDRFAMILY:
      return io_error::no_such_record;
    case EAI_MEMORY:
      return std::make_error_code(std::errc::not_enough_memory);
    case EAI_SYSTEM:
      return number != 0 ? std::error_code(number, std::system_category()) : io_error::name_server_failed;
    default:
      return io_error::name_server_failed;
  }
}

void ask(system_look_up& of) noexcept try {
  ::addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  ::addrinfo* all = nullptr;
  const int code = ::getaddrinfo(of.host.c_str(), nullptr, &wanted, &all);
  if (code != 0) {
    of.error = error_of(code, errno);
    return;
  }
  const std::unique_ptr<::addrinfo, decltype(&::freeaddrinfo)> owned(all, ::freeaddrinfo);
  for (const ::addrinfo* each = all; each != nullptr && of.found.size() < max_addresses; each = each->ai_next) {
    if (each->ai_family == AF_INET || each->ai_family == AF_INET6) {
      ::sockaddr_storage name{};
      std::memcpy(&name, each->ai_addr, std::min<std::size_t>(each->ai_addrlen, sizeof name));
      of.found.push_back(from_native(name).address);
    }
  }
  if (of.found.empty()) {
    of.error = io_error::no_such_record;
  }
} catch (const std::bad_alloc&) {
  of.error = std::make_error_code(std::errc::not_enough_memory);
}

}  // namespace

result<std::vector<ip_address>> system_look_ups::look_up(const std::string& host, platform::time_point deadline) {
  const auto call = std::make_shared<system_look_up>(host);
  if (current_worker() == nullptr) {
    ask(*call);
  } else {
    if (under_way_->fetch_add(1, platform::memory_order_relaxed) >= limit_) {
      under_way_->fetch_sub(1, platform::memory_order_relaxed);
      return fail(std::make_error_code(std::errc::resource_unavailable_try_again));
    }
    auto asks = try_spawn([call, under_way = under_way_] {
      try {
        blocking([&] { ask(*call); });
      } catch (const std::system_error& why) {  // no thread for it
        call->error = why.code();
      } catch (const std::bad_alloc&) {
        call->error = std::make_error_code(std::errc::not_enough_memory);
      }
      under_way->fetch_sub(1, platform::memory_order_relaxed);
      call->done.set();
    });
    if (!asks) {
      under_way_->fetch_sub(1, platform::memory_order_relaxed);
      return fail(asks.error());
    }
    asks->detach();
    if (const auto ended = call->done.wait(deadline); !ended) {
      return fail(make_error_code(ended.error()));
    }
  }
  if (call->error) {
    return fail(call->error);
  }
  return std::move(call->found);
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
