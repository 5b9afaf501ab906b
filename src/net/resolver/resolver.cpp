// Implements resolver: names, the search list, and connections.
#include "pirn/net/resolver.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <optional>
#include <utility>

#include "net/address_order.hpp"
#include "net/connection_race.hpp"
#include "net/look_ups.hpp"
#include "net/resolver/dns_driver.hpp"
#include "net/resolver/hosts_file.hpp"
#include "net/resolver/system_look_up.hpp"
#include "pirn/fiber/scope.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {

using namespace std::chrono_literals;
using detail::answer;
using detail::look_up_call;
using detail::look_ups;
using detail::record_kind;

constexpr std::size_t max_name = 253;
constexpr std::size_t max_label = 63;
constexpr auto resolution_delay = 50ms;  // RFC 8305, section 3

/// Returns the name in lower case, still with a dot at the end if it has one. Bytes that would need an escape are no
/// part of a host's name; a caller that has one in another script encodes it first (IDNA).
result<std::string> checked_name(std::string_view text) {
  std::string name(text);
  const std::string_view labels = text.ends_with('.') ? text.substr(0, text.size() - 1) : text;
  if (labels.empty() || labels.size() > max_name) {
    return fail(io_error::bad_syntax);
  }
  std::size_t length = 0;
  for (char& each : name) {
    if (each <= ' ' || each > '~' || each == '\\' || each == '"' || (each == '.' ? length == 0 : length == max_label)) {
      return fail(io_error::bad_syntax);
    }
    length = each == '.' ? 0 : length + 1;
    each = each >= 'A' && each <= 'Z' ? static_cast<char>(each - 'A' + 'a') : each;
  }
  return name;
}

bool is_localhost(std::string_view name) noexcept { return name == "localhost" || name.ends_with(".localhost"); }

/// Orders errors of look-ups by what they say: that there is no name, no record, no answer that can be used.
/// Below `ends_the_search` the next candidate is asked, as the C library does: a server may fail for one domain only.
constexpr int ends_the_search = 3;
int weight_of(const std::error_code& error) noexcept {
  return error == io_error::name_not_found       ? 0
         : error == io_error::no_such_record     ? 1
         : error == io_error::name_server_failed ? 2
                                                 : ends_the_search;
}
std::error_code heavier(const std::error_code& one, const std::error_code& other) noexcept {
  return weight_of(other) > weight_of(one) ? other : one;
}

/// Calls `f`, and returns a lack of memory as an error.
template <class F>
auto or_no_memory(F f) -> decltype(f()) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return fail(std::make_error_code(std::errc::not_enough_memory));
  }
}

std::vector<endpoint> with_port(std::vector<ip_address> addresses, std::uint16_t port) {
  detail::order_addresses(addresses);
  std::vector<endpoint> made;
  made.reserve(addresses.size());
  for (const ip_address& each : addresses) {
    made.push_back({each, port});
  }
  return made;
}

look_ups::limits limits_of(const resolver::options& wanted) {
  return {.cached = wanted.max_cached,
          .under_way = std::min<std::size_t>(wanted.max_queries, 30'000),  // DNS numbers them with 16 bits
          .longest_time_to_live = wanted.max_time_to_live,
          .longest_negative = wanted.max_negative_time_to_live};
}

/// The order of RFC 2782: by priority, then at random by weight.
void order_services(std::vector<resolver::service>& all, platform::random& random) {
  std::ranges::sort(all, {}, [](const auto& each) { return std::pair(each.priority, each.weight != 0); });
  for (auto first = all.begin(); first != all.end(); ++first) {
    const auto end = std::find_if(first, all.end(), [&](const auto& each) { return each.priority != first->priority; });
    std::uint32_t sum = 0;
    std::for_each(first, end, [&](const auto& each) { sum += each.weight; });
    auto chosen = static_cast<std::uint32_t>(random.next() % (std::uint64_t{sum} + 1));
    auto at = first;
    while (at + 1 != end && chosen > at->weight) {
      chosen -= at->weight;
      ++at;
    }
    std::rotate(first, at, at + 1);
  }
}

}  // namespace

class resolver::state {
 public:
  explicit state(const options& wanted) : state(wanted, std::make_unique<detail::dns_driver>(wanted)) {}

  /// The addresses that are known without a server: of a literal, of the hosts file, or loopback.
  std::vector<ip_address> known(std::string_view host, const std::string& name) {
    if (const auto literal = ip_address::parse(host); literal && !is_localhost(name)) {
      return {*literal};
    }
    const std::string relative = name.ends_with('.') ? name.substr(0, name.size() - 1) : name;
    {
      const platform::spin_guard guard(lock_);
      if (std::vector<ip_address> found = hosts_.find(relative); !found.empty()) {
        return found;
      }
    }
    if (is_localhost(relative)) {
      return {ip_address::loopback_v6(), ip_address::loopback_v4()};
    }
    return {};
  }

  /// The absolute names to try, without the dot at the end, in their order.
  std::vector<std::string> candidates(const std::string& name) {
    if (name.ends_with('.')) {
      return {name.substr(0, name.size() - 1)};
    }
    const detail::search_rules rules = shared_.with_driver([&] { return driver_->rules(); });
    std::vector<std::string> made;
    const bool first = static_cast<unsigned>(std::ranges::count(name, '.')) >= rules.ndots;
    if (first) {
      made.push_back(name);
    }
    for (const std::string& domain : rules.domains) {
      if (auto whole = checked_name(std::string(name).append(1, '.').append(domain))) {
        made.push_back(whole->ends_with('.') ? whole->substr(0, whole->size() - 1) : *whole);
      }
    }
    if (!first) {
      made.push_back(name);
    }
    return made;
  }

  /// Asks for both families of a host, candidate by candidate. Calls `found(addresses)` once or twice with those of one
  /// that exists. With `staged` the first call does not wait for the slower family for longer than RFC 8305 says.
  template <class Found>
  result<> addresses(std::string_view host, bool staged, platform::time_point deadline, Found found) {
    const auto name = checked_name(host);
    if (!name) {
      return fail(name.error());
    }
    if (std::vector<ip_address> all = known(host, *name); !all.empty()) {
      found(std::move(all));
      return {};
    }
    if (by_system_) {
      auto all = by_system_->look_up(*name, deadline);
      if (!all) {
        return fail(all.error());
      }
      found(std::move(*all));
      return {};
    }
    std::error_code error = io_error::name_not_found;
    for (const std::string& each : candidates(*name)) {
      const result<> done = candidate(each, staged, deadline, found);
      if (done || weight_of(done.error()) == ends_the_search) {
        return done;
      }
      error = heavier(error, done.error());
    }
    return fail(error);
  }

  result<std::shared_ptr<const answer>> records(std::string_view name, record_kind kind,
                                                platform::time_point deadline) {
    auto checked = checked_name(name);
    if (!checked) {
      return fail(checked.error());
    }
    if (checked->ends_with('.')) {
      checked->pop_back();
    }
    look_up_call one(shared_, {std::move(*checked), kind});
    look_up_call* const only[] = {&one};
    if (const result<> done = shared_.wait(only, look_ups::quorum::all, deadline); !done) {
      return fail(done.error());
    }
    auto got = one.find_answer();
    if (got->error) {
      return fail(got->error);
    }
    return got;
  }

  /// The servers of a service, in the order in which to try them.
  result<std::vector<service>> services(std::string_view name, platform::time_point deadline) {
    const auto got = records(name, record_kind::srv, deadline);
    if (!got) {
      return fail(got.error());
    }
    std::vector<service> all = (*got)->services;
    const platform::spin_guard guard(lock_);
    order_services(all, random_);
    return all;
  }

  [[nodiscard]] counts counted() { return shared_.counted(); }

 private:
  state(const options& wanted, std::unique_ptr<detail::dns_driver> driver)
      : driver_(driver.get()),
        shared_(std::move(driver), limits_of(wanted)),
        hosts_(wanted.hosts_file),
        by_system_(wanted.by_system ? std::optional<detail::system_look_ups>(wanted.max_queries) : std::nullopt) {}

  template <class Found>
  result<> candidate(const std::string& name, bool staged, platform::time_point deadline, Found& found) {
    look_up_call v6(shared_, {name, record_kind::aaaa});
    look_up_call v4(shared_, {name, record_kind::a});
    look_up_call* const both[] = {&v6, &v4};
    bool v6_given = false;
    if (staged) {
      if (const result<> one = shared_.wait(both, look_ups::quorum::any, deadline); !one) {
        return one;
      }
      auto early = v6.find_answer();
      if (early == nullptr && !v4.find_answer()->error) {
        const auto until = std::min(deadline, platform::later(platform::now(), resolution_delay));
        if (const result<> rest = shared_.wait(both, look_ups::quorum::all, until);
            !rest && (rest.error() != io_error::timed_out || until == deadline)) {
          return rest;
        }
        early = v6.find_answer();
        if (early == nullptr) {
          found(v4.find_answer()->addresses);
          static_cast<void>(shared_.wait(both, look_ups::quorum::all, deadline));
          if (const auto late = v6.find_answer(); late != nullptr && !late->error) {
            found(late->addresses);
          }
          return {};
        }
      } else if (early != nullptr && !early->error && v4.find_answer() == nullptr) {
        found(early->addresses);
        v6_given = true;
      }
    }
    const result<> done = shared_.wait(both, look_ups::quorum::all, deadline);
    if (!done) {
      return v6_given ? result<>() : done;
    }
    const auto six = v6.find_answer(), four = v4.find_answer();
    std::vector<ip_address> all = v6_given ? std::vector<ip_address>() : six->addresses;
    all.insert(all.end(), four->addresses.begin(), four->addresses.end());
    if (!all.empty()) {
      found(std::move(all));
    }
    if (v6_given || !six->error || !four->error) {
      return {};
    }
    return fail(heavier(six->error, four->error));
  }

  detail::dns_driver* const driver_;
  look_ups shared_;
  mutex lock_;
  detail::hosts_file hosts_;                          ///< guarded by `lock_`
  platform::random random_{platform::random_seed()};  ///< as this
  std::optional<detail::system_look_ups> by_system_;
};

resolver::resolver(const options& wanted) : state_(std::make_unique<state>(wanted)) {}
resolver::resolver() : resolver(options{}) {}
resolver::~resolver() = default;

result<std::vector<ip_address>> resolver::look_up(std::string_view host, time_limit deadline) {
  return or_no_memory([&]() -> result<std::vector<ip_address>> {
    std::vector<ip_address> all;
    const result<> done =
        state_->addresses(host, false, deadline, [&](std::vector<ip_address> some) { all = std::move(some); });
    if (!done) {
      return fail(done.error());
    }
    detail::order_addresses(all);
    return all;
  });
}

result<std::vector<resolver::service>> resolver::services(std::string_view name, time_limit deadline) {
  return or_no_memory([&] { return state_->services(name, deadline); });
}

result<std::vector<std::string>> resolver::texts(std::string_view name, time_limit deadline) {
  return or_no_memory([&]() -> result<std::vector<std::string>> {
    const auto got = state_->records(name, record_kind::txt, deadline);
    if (!got) {
      return fail(got.error());
    }
    return (*got)->texts;
  });
}

std::expected<tcp_stream, connect_error> resolver::connect(std::string_view host, std::uint16_t port,
                                                           const connect_options& how, time_limit deadline) try {
  detail::connection_race race(how);
  scope resolving;
  resolving.spawn([&] {
    const result<> done = or_no_memory([&] {
      return state_->addresses(host, true, deadline,
                               [&](std::vector<ip_address> some) { race.add(with_port(std::move(some), port)); });
    });
    race.finish(done ? std::error_code() : done.error());
  });
  auto made = race.run(deadline);
  if (!made) {
    made.error().host = host;
  }
  return made;
} catch (const std::system_error& why) {  // no fiber
  return std::unexpected(connect_error{.code = why.code()});
} catch (const std::bad_alloc&) {
  return std::unexpected(connect_error{.code = std::make_error_code(std::errc::not_enough_memory)});
}

std::expected<tcp_stream, connect_error> resolver::connect(std::string_view host, std::uint16_t port,
                                                           time_limit deadline) {
  return connect(host, port, connect_options{}, deadline);
}

resolver::counts resolver::counted() const { return state_->counted(); }

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
