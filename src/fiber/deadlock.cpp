// The search for deadlocks. It runs in the schedulers of the workers alone, so no operation of a fiber costs more for
// it.
//
// Now and then there is a round. Each worker looks at its own fibers and notes facts about waits: a wait that only one
// fiber can end cannot end before the present wait of that fiber does. Such a fact is true as long as the first of the
// two waits lasts, so it does not matter when each was noted. A cycle of facts whose waits all still last is a
// deadlock. A round begins once a busy worker has not looked for a while, and once all workers have slept as long. A
// worker whose fibers have run since the beginning of a round is late: the others may have looked before the last of
// the waits began. It begins another round itself before it sleeps for long.
//
// The other kind is a runtime in which nothing happens any more. Each worker finds out whether its fibers all wait for
// actions of fibers and plain threads only, and reports that as it falls asleep. The last worker to sleep then asks the
// others twice. If the same workers report it, and none was awake in between, there was a moment at which all slept
// with nothing on its way to any of them. If at this moment every thread of the process was a worker, an idle thread of
// `blocking`, or waiting for a fiber, and no signal has a handler, then nothing is left that could wake a fiber.
#include "pirn/fiber/expert/deadlock.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "fiber/dump_print.hpp"
#include "fiber/runtime_state.hpp"
#include "pirn/fiber/detail/current_fiber.hpp"
#include "stack/backtrace.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {

void print(const std::string& text) noexcept { detail::message(STDERR_FILENO).text(text.c_str()).flush(); }

[[noreturn]] void end_process() noexcept {
  std::fflush(nullptr);
  std::_Exit(deadlock_exit_status);
}

}  // namespace

void exit_on_deadlock(const deadlock& found) {
  platform::end_exploration("deadlock", found.report.c_str());
  print(found.report);
  end_process();
}

namespace detail {

constinit thread_census waiting_threads;

namespace {

// A look costs up to 100 ns for each fiber of the process, since the blocks are cold, and each worker looks: together a
// thousandth of the time.
constexpr auto delay_for_each_fiber = std::chrono::microseconds(100);
constexpr platform::duration probe_interval = std::chrono::milliseconds(20);
constexpr platform::duration longest_delay = std::chrono::hours(24 * 365);  // its multiples are valid times
constexpr unsigned max_probe_attempts = 50;
constexpr int longest_pause = 64;  // delays

/// Returns the fiber that alone can end the wait, null if there is not exactly one. Only its block may be accessed.
const fiber_control* awaited_by(const wait_options& wait) noexcept {
  switch (wait.wakeable_by) {
    case awaited::holder:
      return static_cast<const owner_mark*>(wait.object)->owner();
    case awaited::fiber:
      return static_cast<const fiber_control*>(wait.object);
    default:
      return nullptr;
  }
}

/// Notes the facts about the wait of `f`, which neither a deadline nor a stop can end.
void note_facts(const fiber_control& f, std::uint64_t wait, const wait_options& options,
                std::vector<wait_edge>& facts) {
  const void* to = nullptr;
  std::uint64_t to_wait = 0;
  if (options.wakeable_by == awaited::children) {
    to = options.object;
  } else if (const fiber_control* const owner = awaited_by(options)) {
    const std::uint64_t number = owner->number();
    to_wait = owner->runs_tasks() && options.wakeable_by == awaited::holder ? 0 : owner->present_wait();
    // If it is still the owner, it has been since before its wait; and if `f` still waits, all of this belongs to this
    // wait.
    if (to_wait != 0 && awaited_by(options) == owner && f.present_wait() == wait && owner->number() == number) {
      to = owner;
    }
  }
  if (to == nullptr) {
    return;
  }
  facts.push_back({&f, to, to_wait, &f, f.number(), wait, options});
  if (f.is_child()) {
    if (const stop_list* const scope = static_cast<const child_control&>(f).list()) {
      facts.push_back({scope, &f, wait, &f, f.number(), wait, options});
    }
  }
}

/// Returns whether the wait still lasts. Another fiber in the same block numbers its waits from one again.
bool goes_on(const wait_edge& e) noexcept { return e.who->present_wait() == e.wait && e.who->number() == e.number; }

bool by_origin(const wait_edge& a, const wait_edge& b) noexcept { return std::less<>()(a.from, b.from); }
bool follows(const wait_edge& next, const wait_edge& edge) noexcept {
  return edge.to == next.from && (edge.to_wait == 0 || edge.to_wait == next.wait);
}

/// Returns a cycle of facts, found by depth-first search; empty if there is no cycle.
std::vector<wait_edge> cycle_in(std::vector<wait_edge> facts) {
  std::sort(facts.begin(), facts.end(), by_origin);
  enum class state : std::uint8_t { unseen, on_path, done };
  std::vector<state> states(facts.size(), state::unseen);
  std::vector<std::size_t> path;   // edges
  std::vector<std::size_t> tried;  // for each of them, the edge to try next among those that may follow it
  const auto first_from = [&](const void* origin) {
    const wait_edge wanted{origin, nullptr, 0, nullptr, 0, 0, {}};
    return static_cast<std::size_t>(std::lower_bound(facts.begin(), facts.end(), wanted, by_origin) - facts.begin());
  };
  for (std::size_t start = 0; start < facts.size(); ++start) {
    if (states[start] != state::unseen) {
      continue;
    }
    path.assign(1, start);
    tried.assign(1, first_from(facts[start].to));
    states[start] = state::on_path;
    while (!path.empty()) {
      const std::size_t edge = path.back();
      const std::size_t next = tried.back()++;
      if (next >= facts.size() || facts[next].from != facts[edge].to) {
        states[edge] = state::done;
        path.pop_back();
        tried.pop_back();
      } else if (follows(facts[next], facts[edge])) {
        if (states[next] == state::on_path) {
          std::vector<wait_edge> cycle;
          for (auto at = std::find(path.begin(), path.end(), next); at != path.end(); ++at) {
            cycle.push_back(facts[*at]);
          }
          return cycle;
        }
        if (states[next] == state::unseen) {
          states[next] = state::on_path;
          path.push_back(next);
          tried.push_back(first_from(facts[next].to));
        }
      }
    }
  }
  return {};
}

std::string describe(const fiber_control& f) { return "fiber " + std::to_string(f.number()) + " \"" + f.name() + "\""; }

std::string describe(const std::vector<wait_edge>& cycle) {
  std::string text = "pirn: deadlock: a cycle of fibers, each of which waits for the next one\n";
  char address[32];
  for (const wait_edge& each : cycle) {
    if (each.from != each.who) {
      text += "  one of them is ";
      text += describe(*each.who);
      text += "\n";
      continue;
    }
    text += "  ";
    text += describe(*each.who);
    text += " waits for ";
    text += each.options.what;
    std::snprintf(address, sizeof address, " at %p", each.options.object);
    text += address;
    if (each.options.wakeable_by == awaited::holder) {
      text += ", held by ";
      text += describe(*static_cast<const fiber_control*>(each.to));
    } else if (each.options.wakeable_by == awaited::fiber) {
      text += ", ";
      text += describe(*static_cast<const fiber_control*>(each.to));
    }
    text += "\n";
  }
  return text;
}

/// Returns the text of a dump. Throws std::bad_alloc.
std::string text_of_dump(runtime_state& state) {
  std::string text;
  const int file = memfd_create("pirn-dump", MFD_CLOEXEC);
  if (file < 0) {
    return "pirn: no dump, since memfd_create failed: " + std::system_category().message(errno) + "\n";
  }
  dump_fibers(state, file);
  char buffer[4096];
  off_t at = 0;
  for (ssize_t got = 0; (got = pread(file, buffer, sizeof buffer, at)) > 0; at += got) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  close(file);
  return text;
}

}  // namespace

const fiber_control* holder_of(const wait_options& wait) noexcept {
  return wait.wakeable_by == awaited::holder ? awaited_by(wait) : nullptr;
}

std::string describe_present_cycle() {
  std::vector<wait_edge> facts;
  for_each_worker([&](worker& w) {
    block_chunk::for_each(w, [&](const fiber_control& f) {
      // A fiber that is still on its worker may have begun a wait and not yet set its options.
      if (const std::uint64_t wait = f.present_wait(); wait != 0 && f.home()->queue.running() != &f) {
        if (const wait_options& options = *f.waits; options.deadline == platform::never && !options.stoppable) {
          note_facts(f, wait, options, facts);
        }
      }
    });
  });
  std::vector<wait_edge> cycle = cycle_in(std::move(facts));
  std::ranges::rotate(cycle, std::ranges::min_element(cycle, {}, &wait_edge::number));
  return cycle.empty() ? std::string() : describe(cycle);
}

// ---- one worker ---------------------------------------------------------------------------------------------------

void deadlock_probe::end_quiescence(const deadlock_watch& watch, platform::time_point now) noexcept {
  if constexpr (platform::exploring) {  // an exploration has a separate search, outside of the program's steps
    return;
  }
  quiescent_ = late_ = false;
  probe_attempts_ = 0;
  if (const platform::duration delay = watch.delay(); delay != platform::duration::zero()) {
    if (next_ < now || next_ > now + delay) {
      next_ = now + delay;
    }
  }
}

namespace {
/// Returns when to probe again whether all others sleep.
platform::time_point next_probe(platform::time_point now, platform::random& random) noexcept {
  // Two workers that wake at the same time find each other awake.
  return now + probe_interval / 2 + platform::duration(random.next() % probe_interval.count());
}
}  // namespace

void deadlock_probe::look(worker& w, platform::time_point now, platform::time_point last_tick,
                          platform::random& random) noexcept {
  deadlock_watch& watch = w.owner.deadlocks;
  if (watch.in_new_round(*this)) {
    late_ = late_ && !quiescent_;
    watch.look(w);
    return;
  }
  const platform::duration delay = watch.delay();
  if (w.queue.has_ready()) {
    if (now - last_tick > delay / 2) {  // it has slept: a new deadlock need not be found at once
      next_ = now + delay;
    } else if (const auto later = watch.begin(w, now)) {
      next_ = *later;
    } else {
      watch.look(w);
      next_ = now + delay;
    }
    return;
  }
  if (probe_attempts_ == 0 && (!quiescent_ || late_ || !watch.all_looked(w))) {
    if (const auto later = watch.begin(w, now)) {
      next_ = *later;
      return;
    }
    late_ = false;
    watch.look(w);
    probe_attempts_ = max_probe_attempts;
    pause_ = delay;
    confirmed_ = false;
    next_ = next_probe(now, random);
    return;
  }
  const deadlock_watch::probe_result now_is = watch.probe(w);
  const bool again = std::exchange(confirmed_, now_is == deadlock_watch::probe_result::standstill);
  switch (now_is) {
    case deadlock_watch::probe_result::waiting:
      probe_attempts_ = 0;
      next_ = platform::never;
      break;
    case deadlock_watch::probe_result::moving:
      if (--probe_attempts_ != 0) {
        next_ = next_probe(now, random);
        break;
      }
      [[fallthrough]];
    case deadlock_watch::probe_result::foreign:
      probe_attempts_ = max_probe_attempts;
      next_ = now + pause_;
      pause_ = std::min(2 * pause_, longest_pause * delay);
      break;
    case deadlock_watch::probe_result::standstill:
      probe_attempts_ = again ? 0 : max_probe_attempts;
      next_ = again ? platform::never : next_probe(now, random);
      if (again) {
        watch.report_standstill(w);
      }
  }
}

platform::time_point deadlock_probe::report_idle(const worker& w) noexcept {
  if constexpr (platform::exploring) {
    return platform::never;  // there a standstill is found at once
  }
  report_.store(!quiescent_ || late_ ? idle_report::absent
                : no_external_waker_ ? idle_report::no_external_waker
                                     : idle_report::quiescent,
                platform::memory_order_release);
  if (probe_attempts_ != 0 || late_) {  // if late, even if another one is awake: that may only be probing
    return next_;
  }
  // The last worker to sleep looks, even if nothing has run on it: then it needs a request. Dekker, with the
  // announcement of sleep on one side and the request on the other.
  platform::atomic<bool>& probe_requested = w.owner.deadlocks.probe_requested;
  if (next_ != platform::never) {
    probe_requested.store(true, platform::memory_order_seq_cst);
  }
  if (!w.idle->others_asleep(w.index)) {
    return platform::never;
  }
  if (probe_requested.exchange(false, platform::memory_order_seq_cst) && next_ == platform::never) {
    next_ = platform::now() + w.owner.deadlocks.delay();
  }
  return next_;
}

// ---- all together -------------------------------------------------------------------------------------------------

platform::duration deadlock_watch::delay() const noexcept {
  const platform::duration wanted = owner_.options.deadlock_delay;
  if (wanted == platform::duration::zero()) {
    return wanted;
  }
  const std::size_t looks = owner_.statistics().live_fibers * owner_.workers.size();
  return std::min(std::max<platform::duration>(wanted, looks * delay_for_each_fiber), longest_delay);
}

std::optional<platform::time_point> deadlock_watch::begin(const worker& by, platform::time_point now) noexcept {
  platform::duration::rep last = begun_.load(platform::memory_order_relaxed);
  const platform::time_point next = platform::time_point(platform::duration(last)) + delay() / 2;
  if ((last != 0 && now < next) ||
      !begun_.compare_exchange_strong(last, now.time_since_epoch().count(), platform::memory_order_relaxed)) {
    return std::max(next, now + probe_interval);
  }
  round_.fetch_add(1, platform::memory_order_release);
  platform::heavy_fence();  // pairs with the light fence of a worker whose tick ends
  for (const auto& each : owner_.workers) {
    if (each.get() != &by) {
      each->idle->unpark(each->index);
    }
  }
  return {};
}

void deadlock_watch::look(worker& w) noexcept {
  deadlock_probe& result = w.probe;
  result.round_ = round_.load(platform::memory_order_acquire);
  bool no_external_waker = w.timers.empty() && owner_.engine_used.known;
  std::uint64_t fingerprint = 0;
  std::vector<wait_edge> facts;
  {
    const stealable_queue::hold held(w.stealable, owner_.workers);
    block_chunk::for_each(w, [&](const fiber_control& f) {
      const std::uint64_t wait = f.present_wait();
      // A thief may have taken this fiber, and be running it.
      if (wait == 0 || (f.stealable() && !held.alone())) {
        no_external_waker = false;
        return;
      }
      const wait_options& options = *f.waits;
      if (options.deadline != platform::never || options.wakeable_by == awaited::external) {
        no_external_waker = false;
      } else if (!options.stoppable) {
        try {
          note_facts(f, wait, options, facts);
        } catch (const std::bad_alloc&) {
          facts.clear();
        }
      }
      fingerprint += (f.number() << 32 ^ wait) * 0x9e3779b97f4a7c15u;
    });
  }
  if (!w.stealable.empty()) {  // thieves have left it alone meanwhile
    static_cast<void>(w.idle->recruit_searcher());
  }
  result.no_external_waker_ = no_external_waker;
  result.quiescent_ = true;
  result.fingerprint_.store(fingerprint, platform::memory_order_relaxed);
  try {
    publish(w, std::move(facts));
    if (const std::vector<wait_edge> cycle = find_cycle(); !cycle.empty() && is_new(cycle)) {
      report(w, deadlock::kind::cycle, cycle);
    }
  } catch (const std::bad_alloc&) {
    return;  // tried again later
  }
}

void deadlock_watch::publish(const worker& w, std::vector<wait_edge> facts) {
  const platform::spin_guard guard(lock_);
  edges_.resize(owner_.workers.size());
  edges_[w.index] = std::move(facts);
}

std::vector<wait_edge> deadlock_watch::find_cycle() {
  std::vector<wait_edge> all;
  {
    const platform::spin_guard guard(lock_);
    for (const std::vector<wait_edge>& each : edges_) {
      // Facts of ended waits would hide the present wait of the same fiber.
      std::copy_if(each.begin(), each.end(), std::back_inserter(all), goes_on);
    }
  }
  std::vector<wait_edge> cycle = cycle_in(std::move(all));
  return std::all_of(cycle.begin(), cycle.end(), goes_on) ? cycle : std::vector<wait_edge>();
}

bool deadlock_watch::is_new(const std::vector<wait_edge>& cycle) {
  const platform::spin_guard guard(lock_);
  for (const wait_edge& each : cycle) {
    if (std::find(reported_.begin(), reported_.end(), std::pair(each.number, each.wait)) != reported_.end()) {
      return false;
    }
  }
  reported_.emplace_back(cycle.front().number, cycle.front().wait);
  return true;
}

bool deadlock_watch::all_looked(const worker& by) const noexcept {
  return std::all_of(owner_.workers.begin(), owner_.workers.end(), [&](const auto& each) {
    return each.get() == &by ||
           each->probe.report_.load(platform::memory_order_acquire) != deadlock_probe::idle_report::absent;
  });
}

deadlock_watch::sleepers deadlock_watch::ask_others(const worker& by) const noexcept {
  sleepers result{probe_result::standstill, 0};
  for (const auto& each : owner_.workers) {
    if (!each->stealable.empty() || !each->probe.thread_waits_.load(platform::memory_order_acquire)) {
      return {probe_result::moving, 0};
    }
    if (each.get() == &by) {
      continue;
    }
    // In this order: a worker that has slept, been awake and sleeps again has withdrawn its report before the second
    // sleep, and counts a sleep before it reports.
    const bool asleep = each->incoming.asleep();
    const auto report = each->probe.report_.load(platform::memory_order_acquire);
    result.parks += each->counters.parks.load(platform::memory_order_acquire);
    if (!asleep || report == deadlock_probe::idle_report::absent) {
      return {probe_result::moving, 0};
    }
    if (report == deadlock_probe::idle_report::quiescent) {
      result.what = probe_result::waiting;
    }
  }
  return result;
}

bool deadlock_watch::only_known_threads() noexcept {
  const std::uint64_t waiting = waiting_threads.state();
  const std::optional<std::size_t> idle = owner_.blocking.idle_threads();
  const std::size_t all = platform::thread_count();
  if (!idle || handles_signals()) {
    return false;
  }
  const std::size_t known = owner_.workers.size() + *idle + thread_census::number(waiting) + (owner_.monitor ? 1 : 0) +
                            (owner_.slices ? 1 : 0);
  return all == known && owner_.blocking.idle_threads() == idle && waiting_threads.state() == waiting;
}

deadlock_watch::probe_result deadlock_watch::probe(const worker& w) noexcept {
  if (!w.probe.quiescent_ || !w.incoming.empty()) {
    return probe_result::moving;
  }
  const sleepers before = ask_others(w);
  if (before.what != probe_result::standstill) {
    return before.what;
  }
  if (!w.probe.no_external_waker_ || owner_.statistics().live_fibers == 0) {
    return probe_result::waiting;
  }
  const bool alone = only_known_threads();
  const sleepers after = ask_others(w);
  if (after.what != probe_result::standstill || after.parks != before.parks || !w.incoming.empty()) {
    return probe_result::moving;
  }
  return alone ? probe_result::standstill : probe_result::foreign;
}

std::uint64_t deadlock_watch::fingerprint() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& each : owner_.workers) {
    sum += each->probe.fingerprint_.load(platform::memory_order_relaxed);
  }
  return sum;
}

void deadlock_watch::report_standstill(worker& by) noexcept {
  const std::uint64_t now = fingerprint();
  if (reported_standstill_.exchange(now, platform::memory_order_relaxed) != now) {
    report(by, deadlock::kind::standstill, {});
  }
}

void deadlock_watch::report(worker& by, deadlock::kind what, const std::vector<wait_edge>& cycle) noexcept {
  try {
    std::string text = what == deadlock::kind::cycle
                           ? describe(cycle)
                           : "pirn: deadlock: all fibers wait, and nothing is left that could wake one\n";
    if (!owner_.options.on_deadlock) {
      platform::end_exploration("deadlock", text.c_str());
      print(text);
      dump_fibers(owner_, STDERR_FILENO);
      end_process();
    }
    deadlock found{what, {}, std::move(text) + text_of_dump(owner_)};
    for (const wait_edge& each : cycle) {
      if (each.from == each.who) {
        found.fibers.push_back(each.number);
      }
    }
    std::error_code error;
    const auto call = [this, found] { owner_.options.on_deadlock(found); };
    const spawn_options here{.name = "deadlock handler", .worker = static_cast<int>(by.index)};
    if (fiber_control* const f = launch(owner_, call, here, error)) {
      f->join_word.store(join_detached, platform::memory_order_relaxed);  // it cannot have begun: its worker is here
    } else {
      as_plain_thread(call);
    }
  } catch (const std::bad_alloc&) {
    std::fputs("pirn: deadlock, and no memory to report it\n", stderr);
  }
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
