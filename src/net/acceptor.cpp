// The distribution of connections over workers, and `acceptor` on top of the accept loop.
#include "pirn/net/acceptor.hpp"

#include "fiber/runtime_state.hpp"
#include "net/accept_loop.hpp"
#include "pirn/fiber/stop.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

worker_turns::worker_turns() {
  const detail::worker* const here = detail::current_worker();
  if (here == nullptr) {
    detail::throw_no_runtime();
  }
  workers_ = here->owner.options.workers;
  open_ = std::make_unique<platform::atomic<std::uint32_t>[]>(workers_);
}

unsigned worker_turns::take() noexcept {
  unsigned best = next_;
  std::uint32_t fewest = open_[best].load(platform::memory_order_relaxed);
  for (unsigned i = 1; i < workers_ && fewest != 0; ++i) {
    const unsigned other = (next_ + i) % workers_;
    if (const std::uint32_t there = open_[other].load(platform::memory_order_relaxed); there < fewest) {
      best = other;
      fewest = there;
    }
  }
  open_[best].fetch_add(1, platform::memory_order_relaxed);
  next_ = (best + 1) % workers_;
  return best;
}

std::string accept_trouble::text() const {
  std::string line = "a connection was not accepted: " + error.message();
  if (times > 1) {
    line += " (" + std::to_string(times) + " times since the last report)";
  }
  if (accepted == 0) {
    line += "; none has been accepted yet";
  }
  return line;
}

struct acceptor::each_client final : detail::accept_loop::owner {
  each_client(acceptor& all, begins& each, const stop_token& stop) : of(all), to(each), options(all.options_.fibers) {
    options.stop = stop;
  }
  std::error_code begin(tcp_stream&& taken, unsigned turn) override {
    if (turn != detail::accept_loop::no_turn) {
      options.worker = static_cast<int>(turn);
    }
    return to.begin(std::move(taken), turn, options);
  }
  void tell(const accept_trouble& trouble) override {
    if (of.options_.accept_failed) {
      of.options_.accept_failed(trouble);
    }
  }
  acceptor& of;
  begins& to;
  spawn_options options;
};

acceptor::acceptor(accept_options options)
    : options_(std::move(options)),
      loop_(std::make_unique<detail::accept_loop>(
          detail::accept_loop::limits{.max_connections = options_.max_connections,
                                      .longest_pause = options_.longest_pause,
                                      .accept_failed_every = options_.accept_failed_every,
                                      .in_turn = options_.fibers.worker < 0,
                                      .makes_room = false})) {}

acceptor::~acceptor() = default;

std::error_code acceptor::run(tcp_listener& from, begins& each, time_limit deadline) {
  worker_turns turns;
  if (options_.fibers.worker >= static_cast<int>(turns.workers())) {
    return std::make_error_code(std::errc::invalid_argument);
  }
  stop_source serving;
  each_client clients(*this, each, serving.get_token());
  const std::error_code why = loop_->run(from, clients, turns, deadline);
  // The fibers use local variables of this function, so it waits for them even if the caller was asked to stop.
  if (!loop_->wait_for_ends(time_limit(options_.drain))) {
    serving.request_stop();
    static_cast<void>(loop_->wait_for_ends(platform::never));
  }
  return why;
}

void acceptor::leave(unsigned place) noexcept { loop_->leave(place); }

accept_statistics acceptor::statistics() const noexcept {
  accept_statistics now;
  now.accepted = loop_->accepted.load(platform::memory_order_relaxed);
  now.failed = loop_->failed.load(platform::memory_order_relaxed);
  now.shortages = loop_->shortages.load(platform::memory_order_relaxed);
  now.connections = loop_->open();
  return now;
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
