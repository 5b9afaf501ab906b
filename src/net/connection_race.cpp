// Implements the race of connection attempts, and connect_any.
#include "net/connection_race.hpp"

#include <algorithm>
#include <utility>

#include "pirn/fiber/scope.hpp"
#include "pirn/fiber/this_fiber.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

std::string connect_error::message() const {
  std::string text;
  for (const attempt& each : attempts) {
    text += (text.empty() ? "" : "; ") + each.to.to_string() + ": " + each.code.message();
  }
  if (attempts.empty() || code != attempts.front().code) {
    text = (host.empty() ? "" : host + ": ") + code.message() + (text.empty() ? "" : " (" + text + ")");
  }
  return text;
}

namespace detail {

namespace {

constexpr platform::duration shortest_delay = std::chrono::milliseconds(10);
constexpr std::size_t most_at_once = 128;  // what a look-up finds

}  // namespace

void connection_race::add(std::span<const endpoint> more) {
  {
    const platform::spin_guard guard(lock_);
    if (!v6_is_next_ && !more.empty()) {
      v6_is_next_ = more.front().address.is_v6();
    }
    for (const endpoint& each : more) {
      (each.address.is_v6() ? v6_ : v4_).push_back(each);
    }
  }
  changed_.set();
}

void connection_race::finish(std::error_code why) noexcept {
  {
    const platform::spin_guard guard(lock_);
    more_ = false;
    why_none_ = why;
  }
  changed_.set();
}

std::optional<endpoint> connection_race::next() noexcept {
  const bool v6 = v4_.empty() || (!v6_.empty() && v6_is_next_.value_or(true));
  std::deque<endpoint>& from = v6 ? v6_ : v4_;
  if (from.empty()) {
    return {};
  }
  const endpoint first = from.front();
  from.pop_front();
  v6_is_next_ = !v6;
  return first;
}

void connection_race::attempt(const endpoint& to, platform::time_point deadline) noexcept {
  result<tcp_stream> made = tcp_stream::connect(to, options_, deadline);
  {
    const platform::spin_guard guard(lock_);
    --running_;
    if (!made) {
      failed_.push_back({to, made.error()});  // there is room: see `run`
    } else if (!won_) {
      won_ = std::move(*made);
    }
  }
  changed_.set();
}

std::expected<tcp_stream, connect_error> connection_race::run(platform::time_point deadline) {
  connect_error error;
  {
    scope attempts;
    std::size_t allowed = 1;  // attempts that may run at once
    platform::duration delay = attempt_delay;
    platform::time_point next_begins = platform::never;
    for (;;) {
      std::optional<endpoint> begun;
      platform::time_point until = deadline;
      {
        const platform::spin_guard guard(lock_);
        const bool some_left = !v6_.empty() || !v4_.empty();
        if (won_ || (running_ == 0 && !some_left && !more_)) {
          break;
        }
        if (some_left && running_ < allowed) {
          failed_.reserve(failed_.size() + running_ + 1);
          begun = next();
          ++running_;
        } else if (some_left) {
          until = std::min(deadline, next_begins);
        }
      }
      if (begun) {
        try {
          attempts.spawn([this, to = *begun, deadline] { attempt(to, deadline); });
        } catch (const std::system_error& why) {  // no stack: another attempt that has failed
          const platform::spin_guard guard(lock_);
          --running_;
          failed_.push_back({*begun, why.code()});
        }
        next_begins = platform::later(platform::now(), delay);
      } else if (const auto changed = changed_.wait(until); !changed) {
        if (changed.error() != wait_error::timed_out || until == deadline) {
          error.code = changed.error();
          break;
        }
        allowed += delay == shortest_delay ? most_at_once : 1;
        delay = std::max(delay / 2, shortest_delay);
      }
    }
  }  // the other attempts have been stopped, and have ended
  if (won_) {
    return std::move(*won_);
  }
  if (const auto asked = this_fiber::check_stop(); !asked && !error.code) {
    error.code = make_error_code(asked.error());  // the attempts may have ended by the stop before this fiber ran
  }
  error.attempts = std::move(failed_);
  std::erase_if(error.attempts,
                [](const auto& each) { return each.code == io_error::stopped || each.code == io_error::expired; });
  if (!error.code) {
    error.code = error.attempts.empty() ? why_none_ : error.attempts.front().code;
  }
  return std::unexpected(std::move(error));
}

}  // namespace detail

std::expected<tcp_stream, connect_error> connect_any(std::span<const endpoint> to, const connect_options& options,
                                                     time_limit deadline) noexcept {
  try {
    detail::connection_race race(options);
    race.add(to);
    race.finish(std::make_error_code(std::errc::invalid_argument));
    return race.run(deadline);
  } catch (const std::system_error& why) {  // of the scope
    return std::unexpected(connect_error{.code = why.code()});
  } catch (const std::bad_alloc&) {
    return std::unexpected(connect_error{.code = std::make_error_code(std::errc::not_enough_memory)});
  }
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
