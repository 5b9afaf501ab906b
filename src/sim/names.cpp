// Names of an exploration, in place of the sources of src/net/resolver that ask name servers, read the hosts file and
// call the C library.
#include "pirn/sim/expert/names.hpp"

#include <algorithm>
#include <utility>

#include "detail/chance.hpp"
#include "net/resolver/dns_driver.hpp"
#include "net/resolver/hosts_file.hpp"
#include "net/resolver/resolv_conf.hpp"
#include "net/resolver/system_look_up.hpp"
#include "sim/execution.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace sim {

namespace detail {
struct name_table {
  std::map<std::string, names::host> by_name;
};
}  // namespace detail

names::names(std::map<std::string, host> by_name) {
  if (detail::current == nullptr || detail::current->names() != nullptr) {
    pirn::detail::fail_contract("sim::names made outside of an exploration, or beside another one");
  }
  table_ = std::make_unique<detail::name_table>(std::move(by_name));
  detail::current->names() = table_.get();
}

names::~names() { detail::current->names() = nullptr; }

}  // namespace sim

namespace detail {

namespace {

using namespace std::chrono_literals;

constexpr platform::duration longest_try = 1h;

/// An answer, and the time at which it arrives.
struct reply {
  answer with;
  platform::time_point arrives;
};

answer answer_of(const sim::names::host& host, record_kind kind) {
  answer made;
  made.error = host.error;
  if (!made.error || made.error == io_error::name_not_found || made.error == io_error::no_such_record) {
    made.time_to_live = host.time_to_live;
  }
  if (made.error) {
    return made;
  }
  if (kind == record_kind::srv) {
    made.services = host.services;
  } else if (kind == record_kind::txt) {
    made.texts = host.texts;
  } else {
    std::ranges::copy_if(host.addresses, std::back_inserter(made.addresses),
                         [&](const ip_address& each) { return each.is_v6() == (kind == record_kind::aaaa); });
  }
  if (made.addresses.empty() && made.services.empty() && made.texts.empty()) {
    made.error = io_error::no_such_record;
  }
  return made;
}

/// Asks the table of the execution. As a server that is asked again after each `timeout`, twice as long each time: one
/// that is silent in all `tries`, or answers later, is reported as silent.
reply ask_table(const std::string& name, record_kind kind, platform::duration timeout, unsigned tries) {
  sim::names::host host;
  host.error = io_error::name_not_found;
  if (sim::detail::current != nullptr && sim::detail::current->names() != nullptr) {
    const auto& all = sim::detail::current->names()->by_name;
    if (const auto found = all.find(name); found != all.end()) {
      host = found->second;
    }
  }
  platform::duration whole{0};  // until all tries have ended
  platform::duration lost{0};   // until the first try that reaches the server
  bool reached = false;
  for (unsigned i = 0; i < tries; ++i) {
    reached = reached || !platform::checked::watching || !sim::detail::current->fault(&sim::faults::silence);
    whole += timeout;
    lost = reached ? lost : whole;
    timeout = std::min(2 * timeout, longest_try);
  }
  const platform::duration takes = lost + (kind == record_kind::aaaa ? host.v6_takes.value_or(host.takes) : host.takes);
  if (!reached || takes >= whole || host.error == io_error::name_server_silent) {
    host.error = io_error::name_server_silent;
    return {answer_of(host, kind), platform::later(platform::now(), whole)};
  }
  return {answer_of(host, kind), platform::later(platform::now(), takes)};
}

}  // namespace

/// The queries under way. Changed under the lock of the look-ups.
class dns_driver::channel {
 public:
  struct pending {
    answer with;
    std::shared_ptr<query> what;
    end_call end;
    look_ups* of;
  };
  std::multimap<platform::time_point, pending> all;  ///< by the arrival of their answers
  event changed{event_reset::automatic};
  platform::time_point next = platform::never;  ///< the first arrival, as the caller that waits knows it

  /// Ends the first query, with its answer or with another one.
  void end_first(const std::optional<answer>& other) {
    auto first = all.extract(all.begin());
    pending& one = first.mapped();
    one.end(*one.of, *one.what, other ? answer(*other) : std::move(one.with));
  }
};

dns_driver::dns_driver(const resolver::options& wanted) : wanted_(wanted) {
  channels_.push_back(std::make_unique<channel>());
}

dns_driver::~dns_driver() = default;

search_rules dns_driver::rules() { return {wanted_.search, std::max(wanted_.ndots, 1U)}; }

void dns_driver::ask(std::shared_ptr<query> what, end_call end, look_ups& of) noexcept {
  channel& in = *channels_.front();
  const patience usual;
  reply with = ask_table(what->asked.name, what->asked.kind, wanted_.timeout > 0ms ? wanted_.timeout : usual.timeout,
                         wanted_.tries > 0 ? wanted_.tries : usual.tries);
  in.all.emplace(with.arrives, channel::pending{std::move(with.with), std::move(what), end, &of});
  in.changed.set();
}

platform::time_point dns_driver::next_look() noexcept {
  channel& in = *channels_.front();
  in.changed.reset();
  in.next = in.all.begin()->first;
  return platform::never;  // `wait` knows the caller's deadline then, and watches `next`
}

result<> dns_driver::wait(platform::time_point deadline) noexcept {
  channel& in = *channels_.front();
  const auto woken = in.changed.wait(std::min(deadline, in.next));
  if (woken || woken.error() != wait_error::timed_out) {
    return woken ? result<>() : fail(make_error_code(woken.error()));
  }
  // An answer that arrives at the deadline comes before it or after it.
  const bool arrived = in.next < deadline || (in.next == deadline && platform::chance(2) == 1);
  return arrived ? result<>() : fail(io_error::timed_out);
}

void dns_driver::process() noexcept {
  channel& in = *channels_.front();
  while (!in.all.empty() && in.all.begin()->first <= platform::now()) {
    in.end_first({});
  }
}

void dns_driver::cancel_all() noexcept {
  channel& in = *channels_.front();
  answer stopped;
  stopped.error = io_error::stopped;
  while (!in.all.empty()) {
    in.end_first(stopped);
  }
}

std::vector<ip_address> hosts_file::find(const std::string& /*name*/) { return {}; }

result<std::vector<ip_address>> system_look_ups::look_up(const std::string& host, platform::time_point deadline) {
  const patience usual;
  std::vector<ip_address> found;
  std::error_code error;
  platform::time_point arrives;
  for (const record_kind each : {record_kind::aaaa, record_kind::a}) {
    const reply one = ask_table(host, each, usual.timeout, usual.tries);
    found.insert(found.end(), one.with.addresses.begin(), one.with.addresses.end());
    error = one.with.error == io_error::no_such_record && error ? error : one.with.error;
    arrives = std::max(arrives, one.arrives);
  }
  event never_set;
  if (const auto ended = never_set.wait(std::min(deadline, arrives));
      ended.error() != wait_error::timed_out || deadline < arrives) {
    return fail(make_error_code(ended.error()));
  }
  if (found.empty()) {
    return fail(error);
  }
  return found;
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
