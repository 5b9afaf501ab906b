// The OS threads on which a runtime makes blocking calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <system_error>

#include "pirn/detail/intrusive_list.hpp"
#include "pirn/fiber/blocking.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// A pool of threads, which are started when a call needs one and end when they have been idle for long. The thread
/// that became idle last works next: its cache is warm, and the others get old enough to end.
///
/// A call is announced before its fiber suspends, when an error can still be reported, and submitted once the fiber is
/// switched out. In between it is not forgotten: idle threads end only if there are more of them than announced calls.
class blocking_pool {
 public:
  blocking_pool(unsigned max_threads, platform::duration idle_time) noexcept
      : max_threads_(max_threads), idle_time_(idle_time) {}
  blocking_pool(const blocking_pool&) = delete;
  blocking_pool& operator=(const blocking_pool&) = delete;
  /// Joins the threads. No call may be under way.
  ~blocking_pool();

  /// Announces a call: starts a thread if one is needed and allowed. Throws std::system_error.
  void announce();
  /// Gives an announced call to an idle thread, or to the next thread that is done.
  void submit(blocking_call& call) noexcept;

  /// Whether a call that is announced now probably waits for a thread.
  [[nodiscard]] bool would_queue() noexcept;
  /// Returns the number of threads if all of them are idle and no call is under way, else nothing.
  [[nodiscard]] std::optional<std::size_t> idle_threads() noexcept;
  [[nodiscard]] std::size_t threads() const noexcept { return threads_.load(platform::memory_order_relaxed); }

 private:
  struct member {
    blocking_pool* pool;
    platform::thread thread = {};
    list_links<member> links = {};  ///< in the list of idle threads
    blocking_call* call = nullptr;
    platform::atomic<std::uint32_t> assigned{0};  ///< 1 once `call` is set, null for the end; idle until then
  };

  [[nodiscard]] std::error_code start_thread() noexcept;
  void serve(member& self) noexcept;
  /// Returns the next call for a free thread, or null if the thread must end; then it is counted out.
  blocking_call* next_call(member& self) noexcept;
  void take_off_idle(member& m) noexcept;
  /// Counts out a thread that ends. Each thread joins the one before it, the destructor the last. Releases the lock.
  void count_out(member& self) noexcept;
  static void join(member* ended) noexcept;

  const unsigned max_threads_;
  const platform::duration idle_time_;
  // The rest is under the lock.
  platform::spinlock lock_;
  platform::atomic<std::uint32_t> threads_{0};  ///< threads that have not ended; the destructor sleeps on it
  unsigned looking_ = 0;                        ///< of these, threads that will look for work next
  unsigned idle_count_ = 0;                     ///< of these, threads that wait for work
  unsigned announced_ = 0;                      ///< calls that are not submitted yet
  unsigned queued_ = 0;                         ///< calls that no thread has taken
  bool stopping_ = false;
  blocking_call* first_ = nullptr;  ///< of the queue
  blocking_call* last_ = nullptr;
  intrusive_list<member> idle_;  ///< the thread that became idle last is the first
  member* ended_ = nullptr;      ///< the thread that ended last; to be joined
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
