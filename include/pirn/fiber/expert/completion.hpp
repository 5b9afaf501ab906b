// The completion half of the engine contract: a request that the kernel carries out while its fiber waits.
#pragma once

#include <cstdint>
#include <optional>

#include "pirn/detail/intrusive_list.hpp"
#include "pirn/fiber/expert/wait_queue.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// A call that the kernel is asked to make. The arguments are those of the system call with the name of `what`.
struct kernel_request {
  /// The requests that engines know.
  enum class code : std::uint8_t { receive, send, read_at, write_at, sync, open, stat };
  code what;                 ///< which request
  int descriptor;            ///< or the folder of a path
  void* address = nullptr;   ///< of bytes, of an array of iovec, or of a path
  std::uint32_t size = 0;    ///< of bytes or of the array; the mode of `open`, the mask of `stat`
  std::uint32_t flags = 0;   ///< those of the system call
  std::uint64_t offset = 0;  ///< of a file
  void* second = nullptr;    ///< the statx of `stat`
  bool direct = false;       ///< of `read_at` and `write_at`: the file is open for O_DIRECT
};

/// A request under way, and the fiber that waits for its end. It lies on the fiber's stack together with the memory
/// that the request names, so `run` returns only after the kernel has ended the request, whatever else ends the wait: a
/// stop, a deadline or an interruption cancels the request, and then its end is awaited all the same. If the kernel has
/// done the work, its result is the result, however late it comes.
class completion {
 public:
  /// Does not begin the request: `run` does.
  explicit completion(const kernel_request& what) noexcept : request_(what) {}
  completion(const completion&) = delete;
  completion& operator=(const completion&) = delete;

  /// How a request has ended.
  struct ending {
    std::int32_t result;  ///< of the kernel, or the negated number of its error
    bool cancelled;       ///< it was cancelled before its work was done, because of `why`
    wake_reason why;      ///< `notified` for an interruption
  };
  /// Submits the request to the engine of the calling fiber's worker and waits for its end; nothing if that engine
  /// takes no such request. The fiber stays on its worker meanwhile. Once.
  [[nodiscard]] std::optional<ending> run(platform::time_point deadline, const char* what) noexcept;
  /// Makes the waiting fiber cancel its request, as the descriptor is being closed. Any thread, before `run` returns.
  void interrupt() noexcept;

  /// For engines: what is to be done.
  [[nodiscard]] const kernel_request& request() const noexcept { return request_; }
  /// For engines: the request has ended; from now on nothing refers to its memory. In the thread of the worker that
  /// submitted it, once. The object is gone when the worker next runs a fiber.
  void complete(std::int32_t result) noexcept;

  /// For engines: their number of the request, while it is under way.
  std::uint32_t slot = 0;

  /// Links of a list of the requests of one descriptor.
  detail::list_links<completion> links;

 private:
  const kernel_request request_;
  wait_queue waiter_;  ///< the fiber; its lock is that of the rest
  bool done_ = false;
  bool interrupted_ = false;
  std::int32_t result_ = 0;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
