// Look-ups of names that callers share, with a cache. Independent of the protocol, so that explorations can drive it.
#pragma once

#include <list>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "pirn/detail/intrusive_list.hpp"
#include "pirn/net/resolver.hpp"
#include "pirn/sync/event.hpp"
#include "pirn/sync/mutex.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Kinds of records, with their numbers in DNS.
enum class record_kind : std::uint16_t { a = 1, txt = 16, aaaa = 28, srv = 33 };

struct question {
  std::string name;  ///< absolute, in lower case, without a dot at the end
  record_kind kind;
  bool operator==(const question&) const = default;
};

/// An answer, also a negative one.
struct answer {
  std::error_code error;                    ///< io_error::name_not_found, no_such_record, ...
  std::chrono::seconds time_to_live{0};     ///< how long it may be kept; 0 for errors that are not answers
  std::vector<ip_address> addresses;        ///< of `a` and `aaaa`
  std::vector<resolver::service> services;  ///< of `srv`
  std::vector<std::string> texts;           ///< of `txt`
};

class look_up_call;
class look_ups;

/// One question under way. Guarded by the lock of its `look_ups`.
struct query {
  question asked;
  std::shared_ptr<answer> into = std::make_shared<answer>();  ///< so that no answer fails for want of memory
  bool answered = false;
  intrusive_list<look_up_call> callers = {};
};

/// Carries out queries. `look_ups` calls all but `wait` under its lock.
class name_driver {
 public:
  /// Ends a query: called under the lock, from `ask` or `process` or `cancel_all`.
  using end_call = void (*)(look_ups& of, query& what, answer&& with) noexcept;

  virtual ~name_driver() = default;
  /// Begins a query. Does not suspend. Calls `end` once, at once or later.
  virtual void ask(std::shared_ptr<query> what, end_call end, look_ups& of) noexcept = 0;
  /// Returns when `process` must be called at the latest. There is a query.
  virtual platform::time_point next_look() noexcept = 0;
  /// Suspends until `process` may have something to do, also for a query that has begun meanwhile. One caller at a
  /// time, without the lock.
  virtual result<> wait(platform::time_point deadline) noexcept = 0;
  /// Does what there is to do. Does not suspend.
  virtual void process() noexcept = 0;
  /// Ends all queries with io_error::stopped.
  virtual void cancel_all() noexcept = 0;
};

/// All look-ups of a resolver. Callers with one question share one query. One of the waiting callers drives all queries
/// until it has its answer, is stopped or expires; then another one does. So there is no fiber or thread but the
/// callers, and nothing happens while no one waits.
class look_ups {
 public:
  struct limits {
    std::size_t cached = 10'000;
    std::size_t under_way = 10'000;
    std::chrono::seconds longest_time_to_live = std::chrono::hours(1);
    std::chrono::seconds longest_negative = std::chrono::minutes(5);
  };
  look_ups(std::unique_ptr<name_driver> driver, const limits& limited);
  look_ups(const look_ups&) = delete;
  look_ups& operator=(const look_ups&) = delete;
  /// There are no callers any more.
  ~look_ups();

  enum class quorum : std::uint8_t { any, all };
  /// Suspends until one or all of these calls have their answers. Any fiber or thread.
  result<> wait(std::span<look_up_call* const> calls, quorum enough, platform::time_point deadline);

  [[nodiscard]] resolver::counts counted();
  /// Calls a function that uses the driver, with the lock that guards it.
  template <class F>
  auto with_driver(F use) {
    const platform::spin_guard guard(lock_);
    return use();
  }

 private:
  friend look_up_call;
  struct hash {
    std::size_t operator()(const question& of) const noexcept {
      return std::hash<std::string>()(of.name) ^ (static_cast<std::size_t>(of.kind) << 1);
    }
  };
  struct cached {
    std::shared_ptr<const answer> kept;
    platform::time_point expires;
    std::list<question>::iterator used;
  };
  /// A caller inside `wait`.
  struct waiter {
    event woken{event_reset::automatic};
    list_links<waiter> links{};
  };

  [[nodiscard]] static bool has(std::span<look_up_call* const> calls, quorum enough) noexcept;
  static void end(look_ups& in, query& what, answer&& with) noexcept;
  void keep(const question& asked, std::shared_ptr<const answer> what, std::chrono::seconds time) noexcept;
  [[nodiscard]] std::shared_ptr<const answer> find(const question& asked);

  mutex lock_;
  std::unique_ptr<name_driver> driver_;
  const limits limits_;
  std::unordered_map<question, std::shared_ptr<query>, hash> under_way_;
  std::unordered_map<question, cached, hash> cache_;
  std::list<question> used_;  ///< of the cache, the latest first
  intrusive_list<waiter> waiters_;
  bool driven_ = false;      ///< whether one of them drives
  std::size_t callers_ = 0;  ///< of queries without an answer
  resolver::counts counts_;
};

/// A caller's interest in one question, from construction to destruction.
class look_up_call {
 public:
  /// Joins the query for this question, or begins one, unless the cache has the answer. Throws std::bad_alloc.
  look_up_call(look_ups& in, question wanted);
  look_up_call(const look_up_call&) = delete;
  look_up_call& operator=(const look_up_call&) = delete;
  ~look_up_call();
  /// Returns the answer, or null before there is one. For the caller.
  [[nodiscard]] std::shared_ptr<const answer> find_answer() const;

 private:
  friend look_ups;
  friend intrusive_list<look_up_call>;
  look_ups& in_;
  std::shared_ptr<query> query_;  ///< null if the answer was found at once
  std::shared_ptr<const answer> known_;
  look_ups::waiter* waiter_ = nullptr;

 public:
  list_links<look_up_call> links{};  ///< of the query's callers
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
