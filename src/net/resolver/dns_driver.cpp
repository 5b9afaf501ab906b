// Implements dns_driver: channels of c-ares, their sockets and their times.
#include "net/resolver/dns_driver.hpp"

#include <ares.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include "net/resolver/dns_answer.hpp"
#include "net/resolver/resolv_conf.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

using namespace std::chrono_literals;

// A query that begins while a caller waits may have an earlier time than those that the caller knew of.
constexpr auto longest_wait = 250ms;
constexpr std::size_t max_message = 1232;  // what passes any path in one piece (DNS flag day 2020)

std::system_error refused(int status, const char* what) {
  const std::errc code = status == ARES_ENOMEM ? std::errc::not_enough_memory : std::errc::invalid_argument;
  return {std::make_error_code(code),
          std::string("pirn: c-ares refuses ") + what + " (" + ::ares_strerror(status) + ")"};
}

void initialize_library() {
  static const int status = ::ares_library_init(ARES_LIB_INIT_ALL);  // never undone, since other users may be left
  if (status != ARES_SUCCESS) {
    throw refused(status, "to begin");
  }
}

}  // namespace

class dns_driver::channel {
 public:
  channel(const resolver::options& wanted, int epoll) : epoll_(epoll) {
    std::string path = wanted.resolv_conf;
    ::ares_options options{};
    int given = ARES_OPT_FLAGS | ARES_OPT_EDNSPSZ | ARES_OPT_SOCK_STATE_CB | ARES_OPT_RESOLVCONF | ARES_OPT_TIMEOUTMS |
                ARES_OPT_TRIES;
    options.flags = ARES_FLAG_EDNS;
    options.ednspsz = max_message;
    options.sock_state_cb = &watch;
    options.sock_state_cb_data = this;
    options.resolvconf_path = path.data();
#ifdef ARES_OPT_QUERY_CACHE  // of c-ares 1.31 and later, beside which our limits would mean nothing
    given |= ARES_OPT_QUERY_CACHE;
    options.qcache_max_ttl = 0;
#endif
    const patience configured = read_patience(path);
    const auto timeout = wanted.timeout.count() > 0 ? wanted.timeout : configured.timeout;
    options.timeout = static_cast<int>(std::min<std::int64_t>(timeout.count(), 3'600'000));
    options.tries = static_cast<int>(std::min(wanted.tries > 0 ? wanted.tries : configured.tries, 100U));
    if (const int status = ::ares_init_options(&channel_, &options, given); status != ARES_SUCCESS) {
      throw refused(status, "the options of the resolver");
    }
    if (!wanted.servers.empty()) {
      std::string list;
      for (const endpoint& each : wanted.servers) {
        list += (list.empty() ? "" : ",") + each.to_string();
      }
      if (const int status = ::ares_set_servers_ports_csv(channel_, list.c_str()); status != ARES_SUCCESS) {
        ::ares_destroy(channel_);
        throw refused(status, "`servers` of the resolver");
      }
    }
  }
  channel(const channel&) = delete;
  channel& operator=(const channel&) = delete;
  ~channel() { ::ares_destroy(channel_); }

  void ask(std::shared_ptr<query> what, end_call end, look_ups& of) noexcept {
    try {
      auto* const asked = new pending{*this, std::move(what), end, of};
      ++pending_;
      ::ares_query(channel_, asked->what->asked.name.c_str(), 1, static_cast<int>(asked->what->asked.kind), &answered,
                   asked);
    } catch (const std::bad_alloc&) {
      end(of, *what, read_answer(record_kind::a, ARES_ENOMEM, {}));
    }
  }
  [[nodiscard]] bool idle() const noexcept { return pending_ == 0; }
  void cancel() noexcept { ::ares_cancel(channel_); }
  void process(int readable, int writable) noexcept { ::ares_process_fd(channel_, readable, writable); }
  /// Returns the time until a try ends, if there is a query.
  [[nodiscard]] platform::time_point next_look() const noexcept {
    ::timeval left{};
    if (::ares_timeout(channel_, nullptr, &left) == nullptr) {
      return platform::never;
    }
    return platform::later(platform::now(),
                           std::chrono::seconds(left.tv_sec) + std::chrono::microseconds(left.tv_usec));
  }
  /// Reads the search rules that c-ares has found. Throws std::bad_alloc.
  void read_rules(search_rules& into) const {
    ::ares_options found{};
    int which = 0;
    if (::ares_save_options(channel_, &found, &which) != ARES_SUCCESS) {
      return;
    }
    const std::unique_ptr<::ares_options, decltype(&::ares_destroy_options)> owned(&found, &::ares_destroy_options);
    into.ndots = (which & ARES_OPT_NDOTS) != 0 ? static_cast<unsigned>(found.ndots) : into.ndots;
    for (int i = 0; (which & ARES_OPT_DOMAINS) != 0 && i < found.ndomains; ++i) {
      into.domains.emplace_back(found.domains[i]);
    }
  }

 private:
  struct pending {
    channel& in;
    std::shared_ptr<query> what;  ///< kept until `end` has returned
    end_call end;
    look_ups& of;
  };

  static void answered(void* argument, int status, int /*timeouts*/, unsigned char* data, int size) noexcept {
    const std::unique_ptr<pending> one(static_cast<pending*>(argument));
    --one->in.pending_;
    const std::span<const std::uint8_t> message(data, data != nullptr ? static_cast<std::size_t>(size) : 0);
    one->end(one->of, *one->what, read_answer(one->what->asked.kind, status, message));
  }
  static void watch(void* self, ares_socket_t socket, int readable, int writable) noexcept {
    const int epoll = static_cast<channel*>(self)->epoll_;
    ::epoll_event wanted{};
    wanted.events = (readable != 0 ? EPOLLIN : 0U) | (writable != 0 ? EPOLLOUT : 0U);
    wanted.data.fd = socket;
    if (wanted.events == 0) {
      ::epoll_ctl(epoll, EPOLL_CTL_DEL, socket, nullptr);
    } else if (::epoll_ctl(epoll, EPOLL_CTL_MOD, socket, &wanted) != 0) {
      ::epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &wanted);  // if it fails, the tries at this server time out
    }
  }

  const int epoll_;
  ::ares_channel channel_ = nullptr;
  std::size_t pending_ = 0;
};

dns_driver::dns_driver(const resolver::options& wanted) : wanted_(wanted) {
  initialize_library();
  ready_ = descriptor(::epoll_create1(EPOLL_CLOEXEC));
  if (!ready_.is_open()) {
    throw std::system_error(errno, std::system_category(), "pirn: no epoll instance for the resolver");
  }
  read_at_ = file_stamp::of(wanted_.resolv_conf);
  channels_.push_back(std::make_unique<channel>(wanted_, ready_.native()));
  read_rules();
}

dns_driver::~dns_driver() = default;

void dns_driver::renew() noexcept {
  std::erase_if(channels_, [&](const auto& each) { return each->idle() && each != channels_.back(); });
  const file_stamp now = file_stamp::of(wanted_.resolv_conf);
  if (now == read_at_) {
    return;
  }
  try {
    channels_.push_back(std::make_unique<channel>(wanted_, ready_.native()));
    read_rules();
    read_at_ = now;
  } catch (const std::exception&) {
    // The next query tries again.
  }
}

void dns_driver::read_rules() {
  search_rules found;
  channels_.back()->read_rules(found);
  if (wanted_.ndots != 0) {
    found.ndots = wanted_.ndots;
  }
  if (!wanted_.search.empty()) {
    found.domains = wanted_.search;
  }
  rules_ = std::move(found);
}

search_rules dns_driver::rules() {
  renew();
  return rules_;
}

void dns_driver::ask(std::shared_ptr<query> what, end_call end, look_ups& of) noexcept {
  renew();
  channels_.back()->ask(std::move(what), end, of);
}

platform::time_point dns_driver::next_look() noexcept {
  platform::time_point earliest = platform::later(platform::now(), longest_wait);
  for (const auto& each : channels_) {
    earliest = std::min(earliest, each->next_look());
  }
  return earliest;
}

result<> dns_driver::wait(platform::time_point deadline) noexcept { return ready_.wait(io_direction::read, deadline); }

void dns_driver::process() noexcept {
  // c-ares reads one message of a TCP connection at a time, and the wait reports a socket once: so until none is ready.
  for (int round = 0; round < 64; ++round) {
    ::epoll_event events[64];
    const int count = ::epoll_wait(ready_.native(), events, static_cast<int>(std::size(events)), 0);
    for (int i = 0; i < count; ++i) {
      const bool failed = (events[i].events & (EPOLLERR | EPOLLHUP)) != 0;
      const int readable = failed || (events[i].events & EPOLLIN) != 0 ? events[i].data.fd : ARES_SOCKET_BAD;
      const int writable = failed || (events[i].events & EPOLLOUT) != 0 ? events[i].data.fd : ARES_SOCKET_BAD;
      for (const auto& each : channels_) {
        each->process(readable, writable);
      }
    }
    if (count <= 0) {
      break;
    }
  }
  for (const auto& each : channels_) {
    each->process(ARES_SOCKET_BAD, ARES_SOCKET_BAD);  // the times
  }
}

void dns_driver::cancel_all() noexcept {
  for (const auto& each : channels_) {
    each->cancel();
  }
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
