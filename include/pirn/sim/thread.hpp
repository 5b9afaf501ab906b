// Plain threads in an exploration.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "pirn/sim/explore.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim {

/// As std::jthread, but without a stop: a thread that is not a worker of a runtime, for programs in which such threads
/// use pirn too. Must be created in an exploration, where the start of a std::thread ends the execution as `aborted`.
class thread {
 public:
  thread() noexcept;
  /// Throws std::system_error if there are sixteen threads already, workers included.
  explicit thread(std::function<void()> body);
  ~thread();
  thread(thread&&) noexcept;
  thread& operator=(thread&& other) noexcept;

  /// Waits for the end of the thread. An exception that leaves `body` ends the execution as failed.
  void join() noexcept;
  /// Whether there is a thread to join.
  [[nodiscard]] bool joinable() const noexcept { return state_ != nullptr; }

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace sim
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
