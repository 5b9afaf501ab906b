// The OS threads on which a runtime makes blocking calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <system_error>

#include "pirn/fiber/blocking.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Threads that are started when a call needs one, and end when they have long been idle. Of the idle ones the last
/// that became so works next: its cache is warm, and the others get old enough to end.
///
/// A call is announced before its fiber suspends, when an error can still be told, and submitted once it is switched
/// out. In between it is not forgotten: idle threads end only if there are more of them than announced calls.
class blocking_pool {
 public:
  blocking_pool(unsigned max_threads, platform::duration idle_time) noexcept
      : max_threads_(max_threads), idle_time_(idle_time) {}
  blocking_pool(const blocking_pool&) = delete;
  blocking_pool& operator=(const blocking_pool&) = delete;
  /// Joins the threads. No call may be on its way.
  ~blocking_pool();

  /// A call will be submitted: starts a thread if one is needed and allowed. Throws std::system_error.
  void announce();
  /// Gives an announced call to an idle thread, or to the next one that is done.
  void submit(blocking_call& call) noexcept;

  /// Its threads if all of them are idle and no call is on its way.
  [[nodiscard]] std::optional<std::size_t> idle_threads() noexcept;
  [[nodiscard]] std::size_t threads() const noexcept { return threads_.load(platform::memory_order_relaxed); }

 private:
  struct member {
    blocking_pool* pool;
    platform::thread thread = {};
    member* next = nullptr;      ///< among the idle, from the last to the first
    member* previous = nullptr;  ///< among the idle
    blocking_call* call = nullptr;
    platform::atomic<std::uint32_t> told{0};  ///< 1 once `call` is there, or null for the end; idle until then
  };

  [[nodiscard]] std::error_code start_thread() noexcept;
  void serve(member& self) noexcept;
  /// The next call for an idle thread, or null if the thread is to end; then it is counted out.
  blocking_call* next_call(member& self) noexcept;
  void take_off_idle(member& m) noexcept;
  /// The thread ends; each joins the one before it, the destructor the last. Releases the lock.
  void count_out(member& self) noexcept;
  static void join(member* ended) noexcept;

  const unsigned max_threads_;
  const platform::duration idle_time_;
  // The rest is under the lock.
  platform::spinlock lock_;
  platform::atomic<std::uint32_t> threads_{0};  ///< that have not ended; also what the destructor sleeps on
  unsigned looking_ = 0;                        ///< of these, that will look for work next
  unsigned idle_count_ = 0;                     ///< of these, that wait for it
  unsigned announced_ = 0;                      ///< calls that are not submitted yet
  unsigned queued_ = 0;                         ///< calls that no thread has taken
  bool stopping_ = false;
  blocking_call* first_ = nullptr;  ///< of the queue
  blocking_call* last_ = nullptr;
  member* idle_ = nullptr;   ///< the last that became so
  member* ended_ = nullptr;  ///< the last that did; to be joined
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
