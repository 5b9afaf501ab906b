// The random, pct and replay strategies, and seeds as text.
#include "sim/schedule.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "sim/exhaustive.hpp"
#include "sim/vector_clock.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

namespace {

constexpr std::string_view seed_version = "2";

/// Chooses each enabled thread with the same probability, at every point.
class random_schedule final : public schedule {
 public:
  explicit random_schedule(std::uint64_t seed) noexcept : numbers_(seed) {}

 protected:
  unsigned pick_thread(thread_set enabled, unsigned /*running*/) noexcept override {
    for (auto skip = numbers_.next() % static_cast<unsigned>(std::popcount(enabled)); skip != 0; --skip) {
      enabled &= enabled - 1;
    }
    return static_cast<unsigned>(std::countr_zero(enabled));
  }
  unsigned choose_value(unsigned count) noexcept override { return static_cast<unsigned>(numbers_.next() % count); }
  bool advance() override { return true; }

 private:
  platform::random numbers_;
};

/// Probabilistic concurrency testing (Burckhardt and others, ASPLOS 2010): random priorities, and at depth - 1 random
/// steps the running thread falls below all others. A bug that needs `depth` events in one order is found by each
/// execution with a probability of at least 1 / (threads * steps^(depth - 1)).
class pct_schedule final : public schedule {
 public:
  pct_schedule(std::uint64_t seed, unsigned depth) noexcept : numbers_(seed), depth_(depth) {}

  void ended(std::uint64_t steps) noexcept override {
    const std::uint64_t length = std::max(steps, std::uint64_t{choices()});
    // In a longer execution no change of priority, if there is one at all, could come near the end.
    bounded_ += (length <= longest_ || depth_ <= 1) && !decided_otherwise_ ? 1 : 0;
    longest_ = std::max(longest_, length);
  }
  [[nodiscard]] double missed(unsigned threads) const noexcept override {
    const double changes = std::max(depth_, 1U) - 1;
    const double found = 1 / (threads * std::pow(static_cast<double>(longest_), changes));
    return std::pow(1 - found, static_cast<double>(bounded_));
  }
  void yielded(unsigned thread) noexcept override {
    priorities_[thread] = lowest_--;
    decided_otherwise_ = true;
  }

 protected:
  unsigned pick_thread(thread_set enabled, unsigned running) noexcept override {
    ++step_;
    if (running != no_thread && std::ranges::find(changes_, step_) != changes_.end()) {
      priorities_[running] = lowest_--;
    }
    unsigned best = no_thread;
    for (; enabled != 0; enabled &= enabled - 1) {
      const auto each = static_cast<unsigned>(std::countr_zero(enabled));
      if (best == no_thread || priorities_[each] > priorities_[best]) {
        best = each;
      }
    }
    return best;
  }
  unsigned choose_value(unsigned count) noexcept override {
    decided_otherwise_ = true;
    return static_cast<unsigned>(numbers_.next() % count);
  }
  bool advance() override {
    decided_otherwise_ = false;
    step_ = 0;
    lowest_ = -1;
    for (auto& each : priorities_) {
      each = static_cast<std::int64_t>(numbers_.next() >> 8);
    }
    changes_.clear();
    for (unsigned i = 1; i < std::min<std::uint64_t>(depth_, longest_); ++i) {
      changes_.push_back(1 + numbers_.next() % longest_);
    }
    return true;
  }

 private:
  platform::random numbers_;
  unsigned depth_;
  std::uint64_t longest_ = 1;       ///< steps of the longest execution so far
  std::uint64_t bounded_ = 0;       ///< executions for which the bound holds
  bool decided_otherwise_ = false;  ///< a decision in this execution did not come from priorities, so no bound holds
  std::uint64_t step_ = 0;
  std::int64_t lowest_ = -1;
  std::array<std::int64_t, max_threads> priorities_{};
  std::vector<std::uint64_t> changes_;
};

class replay_schedule final : public schedule {
 public:
  explicit replay_schedule(deviations path) noexcept : wanted_(std::move(path)) {}

 protected:
  unsigned pick_thread(thread_set enabled, unsigned running) noexcept override {
    const unsigned wanted = next_wanted(no_thread);
    return wanted < max_threads && (enabled & only(wanted)) != 0 ? wanted : default_thread(enabled, running);
  }
  unsigned choose_value(unsigned count) noexcept override {
    const unsigned wanted = next_wanted(0);
    return wanted < count ? wanted : 0;
  }
  bool advance() override { return !std::exchange(done_, true); }

 private:
  unsigned next_wanted(unsigned otherwise) noexcept {
    return next_ < wanted_.size() && wanted_[next_].at == choices() ? wanted_[next_++].chosen : otherwise;
  }
  deviations wanted_;
  std::size_t next_ = 0;
  bool done_ = false;
};

}  // namespace

std::string to_seed(const recipe& of) {
  char fingerprint[8];
  static_cast<void>(std::snprintf(fingerprint, sizeof fingerprint, "-%04x", static_cast<unsigned>(of.fingerprint)));
  std::string seed = std::string(seed_version) + fingerprint;
  for (const deviation& each : of.path) {
    seed += "-" + std::to_string(each.at) + "." + std::to_string(each.chosen);
  }
  return seed;
}

bool from_seed(std::string_view seed, recipe& into) {
  into = {};
  if (!seed.starts_with(seed_version)) {
    return false;
  }
  const char* at = seed.data() + seed_version.size();
  const char* const end = seed.data() + seed.size();
  const auto number = [&](char before, auto& value, int base) {
    if (at == end || *at != before) {
      return false;
    }
    ++at;
    const auto [next, error] = std::from_chars(at, end, value, base);
    at = next;
    return error == std::errc();
  };
  if (!number('-', into.fingerprint, 16)) {
    return false;
  }
  while (at != end) {
    deviation& each = into.path.emplace_back();
    if (!number('-', each.at, 10) || !number('.', each.chosen, 10) ||
        (into.path.size() > 1 && each.at <= into.path[into.path.size() - 2].at)) {
      return false;
    }
  }
  return true;
}

unsigned default_thread(thread_set enabled, unsigned running) noexcept {
  if (running == no_thread) {
    return static_cast<unsigned>(std::countr_zero(enabled));
  }
  if ((enabled & only(running)) != 0) {
    return running;
  }
  const thread_set above = enabled & ~(only(running) - 1);
  return static_cast<unsigned>(std::countr_zero(above != 0 ? above : enabled));
}

std::unique_ptr<schedule> make_schedule(const sim::options& options) {
  switch (options.strategy) {
    case strategy::random:
      return std::make_unique<random_schedule>(options.seed);
    case strategy::pct:
      return std::make_unique<pct_schedule>(options.seed, options.depth);
    default:
      return std::make_unique<exhaustive_schedule>(options.preemptions, options.reduce);
  }
}

std::unique_ptr<schedule> make_replay(deviations path) { return std::make_unique<replay_schedule>(std::move(path)); }

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
