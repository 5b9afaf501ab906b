// Carries out operations. An engine with the completion half carries out what it can. Without it, what can be watched
// goes by the loop of a descriptor (try, wait, try), and files go to the blocking pool after a look into the page
// cache.
#include "pirn/io/expert/operation.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <new>
#include <optional>
#include <system_error>

#include "detail/system.hpp"
#include "io/attempt.hpp"
#include "io/kernel_access.hpp"
#include "pirn/fiber/blocking.hpp"
#include "pirn/fiber/expert/completion.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

using detail::error_of_call;
using detail::reason_to_stop;
using detail::result_of_call;

/// One operation under way.
class operation_runner {
 public:
  operation_runner(const operation& what, platform::time_point deadline) noexcept : op_(what), deadline_(deadline) {}

  [[nodiscard]] result<std::int64_t> run() noexcept {
    if (op_.on_ != nullptr && op_.on_->receives_.load(platform::memory_order_relaxed) != nullptr && receives())
        [[unlikely]] {
      return receive_lent();
    }
    if (const detail::worker* const here = detail::current_worker();
        here != nullptr && (here->io->completes() || is_direct())) {
      if (const std::optional<kernel_request> request = request_of()) {
        if (const std::optional<result<std::int64_t>> done = by_engine(*request)) {
          return is_redirected(*done) ? receive_lent() : *done;
        }
      }
    }
    switch (op_.kind_) {
      case kind::receive:
      case kind::receive_message:
      case kind::accept:
      case kind::read: {
        const result<std::int64_t> done = attempt(io_direction::read);
        return is_redirected(done) ? receive_lent() : done;
      }
      case kind::send:
      case kind::send_message:
      case kind::connect:
      case kind::write:
        return attempt(io_direction::write);
      case kind::poll: {
        const result<> ready = op_.on_->wait(static_cast<io_direction>(op_.flags_), deadline_);
        return ready ? result<std::int64_t>(0) : fail(ready.error());
      }
      case kind::splice:
        return splice();
      case kind::read_at:
      case kind::write_at:
      case kind::sync:
      case kind::open:
      case kind::stat:
      case kind::call:
        break;
    }
    return in_pool();
  }

 private:
  using kind = operation::kind;
  static constexpr std::size_t max_bytes = std::size_t{1} << 30;  ///< of one receive
  static constexpr std::size_t max_gathered = 4096;               ///< bytes of a send that waits for those of others

  /// Lets a close of the descriptor find a request. The close looks again until all have ended.
  class request_of_descriptor {
   public:
    request_of_descriptor(descriptor* on, completion& what) noexcept : on_(on), what_(what) {
      if (on_ != nullptr) {
        const platform::spin_guard guard(on_->attaching_);
        on_->requests_.push_front(what_);
      }
    }
    ~request_of_descriptor() {
      if (on_ != nullptr) {
        const platform::spin_guard guard(on_->attaching_);
        on_->requests_.remove(what_);
      }
    }
    request_of_descriptor(const request_of_descriptor&) = delete;
    request_of_descriptor& operator=(const request_of_descriptor&) = delete;

   private:
    descriptor* const on_;
    completion& what_;
  };

  /// Whether other fibers are ready that may send too, and one call then passes on all of that. Without them the call
  /// itself is cheaper, and if they compute, it is earlier.
  [[nodiscard]] static bool others_send_soon() noexcept {
    const detail::worker& here = *detail::current_worker();
    return here.queue.has_ready() && here.turns_are_short();
  }
  /// Whether it reads or writes a file that is open for O_DIRECT.
  [[nodiscard]] bool is_direct() const noexcept {
    return (op_.kind_ == kind::read_at || op_.kind_ == kind::write_at) &&
           static_cast<page_cache>(op_.flags_) == page_cache::bypass;
  }
  /// Whether it takes bytes of its descriptor.
  [[nodiscard]] bool receives() const noexcept {
    return op_.kind_ == kind::receive || op_.kind_ == kind::receive_message || op_.kind_ == kind::read ||
           op_.kind_ == kind::splice;
  }
  /// Whether it has ended since there was a `lend` meanwhile.
  [[nodiscard]] bool is_redirected(const result<std::int64_t>& done) const noexcept {
    return !done && op_.kind_ == kind::receive && op_.on_->is_redirected(io_direction::read, descriptor::caller::any) &&
           (done.error() == std::errc::operation_not_supported ||
            (done.error() == io_error::closed && op_.on_->is_open()));
  }
  /// Receives from a descriptor that has lent bytes, and may hold more.
  [[nodiscard]] result<std::int64_t> receive_lent() noexcept {
    if (op_.kind_ != kind::receive || op_.flags_ != 0) {
      return fail(std::make_error_code(std::errc::operation_not_supported));
    }
    const result<std::size_t> got = op_.on_->receive_lent(op_.memory_.iov_base, op_.memory_.iov_len, deadline_);
    return got ? result<std::int64_t>(static_cast<std::int64_t>(*got)) : fail(got.error());
  }

  [[nodiscard]] std::span<const ::iovec> parts() const noexcept {
    return {static_cast<const ::iovec*>(op_.memory_.iov_base), op_.memory_.iov_len};
  }
  /// Returns the memory that the call reads or writes.
  [[nodiscard]] std::span<const ::iovec> memory() const noexcept {
    switch (op_.kind_) {
      case kind::receive:
      case kind::send:
        return {&op_.memory_, 1};
      case kind::receive_message:
      case kind::send_message: {
        const auto& message = *static_cast<const ::msghdr*>(op_.memory_.iov_base);
        return {message.msg_iov, message.msg_iovlen};
      }
      case kind::read:
      case kind::write:
      case kind::read_at:
      case kind::write_at:
        return parts();
      default:
        return {};
    }
  }

  /// Tries, waits for readiness, and tries again.
  [[nodiscard]] result<std::int64_t> attempt(io_direction direction) noexcept {
    const descriptor::syscall make = [](int native, void* self) noexcept {
      return static_cast<operation_runner*>(self)->call(native);
    };
    return op_.on_->perform(direction, deadline_, make, this, memory());
  }

  /// Makes the system call on a descriptor.
  [[nodiscard]] std::int64_t call(int native) noexcept {
    namespace system = platform::system;
    void* const address = op_.memory_.iov_base;
    const std::size_t size = op_.memory_.iov_len;
    const auto offset = static_cast<::off_t>(op_.offset_);
    switch (op_.kind_) {
      case kind::receive:
        return result_of_call(system::recv(native, address, size, op_.flags_));
      case kind::send:
        return result_of_call(system::send(native, address, size, op_.flags_));
      case kind::receive_message:
        return result_of_call(::recvmsg(native, static_cast<::msghdr*>(address), op_.flags_));
      case kind::send_message:
        return result_of_call(system::sendmsg(native, static_cast<const ::msghdr*>(address), op_.flags_));
      case kind::accept:
        return result_of_call(system::accept4(native, static_cast<::sockaddr*>(address), op_.size_, op_.flags_));
      case kind::connect:
        return connect(native);
      case kind::read:
        return result_of_call(system::readv(native, parts().data(), count()));
      case kind::write:
        return result_of_call(system::writev(native, parts().data(), count()));
      case kind::read_at:
        return result_of_call(system::preadv(native, parts().data(), count(), offset));
      case kind::write_at:
        return result_of_call(system::pwritev(native, parts().data(), count(), offset));
      case kind::sync:
        return result_of_call(static_cast<sync_scope>(op_.flags_) == sync_scope::data ? system::fdatasync(native)
                                                                                      : system::fsync(native));
      case kind::open:
        return result_of_call(
            system::openat(op_.folder_, static_cast<const char*>(address), op_.flags_, static_cast<::mode_t>(size)));
      case kind::stat:
        return result_of_call(system::statx(native >= 0 ? native : op_.folder_, static_cast<const char*>(address),
                                            op_.flags_, static_cast<unsigned>(size), op_.into_));
      case kind::call:
        return op_.call_(native, address);
      case kind::poll:
      case kind::splice:
        break;
    }
    return -ENOSYS;
  }

  [[nodiscard]] int count() const noexcept { return static_cast<int>(op_.memory_.iov_len); }

  [[nodiscard]] std::int64_t connect(int native) noexcept {
    if (!begun_) {
      begun_ = true;
      const std::int64_t outcome = result_of_call(platform::system::connect(
          native, static_cast<const ::sockaddr*>(op_.memory_.iov_base), static_cast<::socklen_t>(op_.memory_.iov_len)));
      // EAGAIN is no promise of readiness here: no free port, or a Unix socket whose listener's queue is full.
      return outcome == -EINPROGRESS || outcome == -EINTR ? -EAGAIN : outcome == -EAGAIN ? -EADDRNOTAVAIL : outcome;
    }
    // Readiness alone is no proof: the socket may have been reported as ready before the attempt began.
    ::pollfd interest{native, POLLOUT, 0};
    if (const std::int64_t ready = result_of_call(platform::system::poll(&interest, 1, 0)); ready <= 0) {
      return ready == 0 ? -EAGAIN : ready;
    }
    int failure = 0;
    ::socklen_t size = sizeof failure;
    const std::int64_t asked =
        result_of_call(platform::system::getsockopt(native, SOL_SOCKET, SO_ERROR, &failure, &size));
    return asked < 0 ? asked : -failure;
  }

  [[nodiscard]] result<std::int64_t> splice() noexcept {
    // Each call keeps its descriptor open.
    const descriptor::syscall with_target = [](int to, void* self) noexcept -> std::int64_t {
      auto& runner = *static_cast<operation_runner*>(self);
      runner.target_ = to;
      const descriptor::syscall with_source = [](int from, void* again) noexcept {
        const auto& it = *static_cast<const operation_runner*>(again);
        return result_of_call(::splice(from, nullptr, it.target_, nullptr, it.op_.memory_.iov_len,
                                       static_cast<unsigned>(it.op_.flags_) | SPLICE_F_NONBLOCK));
      };
      runner.moved_ = runner.op_.on_->invoke(with_source, self);
      return 0;
    };
    for (;;) {
      if (const std::error_code reason = reason_to_stop(deadline_)) {
        return fail(reason);
      }
      if (const auto open = op_.to_->invoke(with_target, this); !open) {
        return open;
      }
      if (moved_ || moved_.error() != std::errc::resource_unavailable_try_again) {
        return moved_;
      }
      // One of them is not ready, and the kernel does not say which.
      if (const result<> ready = op_.on_->wait(io_direction::read, deadline_); !ready) {
        return fail(ready.error());
      }
      if (const result<> ready = op_.to_->wait(io_direction::write, deadline_); !ready) {
        return fail(ready.error());
      }
    }
  }

  /// Returns what an engine is asked to do, if there is such a request.
  [[nodiscard]] std::optional<kernel_request> request_of() const noexcept {
    using code = kernel_request::code;
    kernel_request made{.what = code::receive,
                        .descriptor = op_.folder_,
                        .address = op_.memory_.iov_base,
                        .size = static_cast<std::uint32_t>(op_.memory_.iov_len),
                        .flags = static_cast<std::uint32_t>(op_.flags_),
                        .offset = op_.offset_};
    switch (op_.kind_) {
      case kind::receive:
        made.size = static_cast<std::uint32_t>(std::min<std::size_t>(op_.memory_.iov_len, max_bytes));
        break;
      case kind::send:
        if (op_.memory_.iov_len > max_gathered || !others_send_soon()) {
          return {};
        }
        made.what = code::send;
        break;
      case kind::read_at:
      case kind::write_at:
        made.what = op_.kind_ == kind::read_at ? code::read_at : code::write_at;
        made.flags = 0;
        made.direct = is_direct();
        break;
      case kind::sync:
        made.what = code::sync;
        made.flags = static_cast<sync_scope>(op_.flags_) == sync_scope::data ? 1 : 0;
        break;
      case kind::open:
        made.what = code::open;
        break;
      case kind::stat:
        made.what = code::stat;
        made.second = op_.into_;
        break;
      // An accept goes by readiness: a request that the kernel holds would take a connection after a stop, and would
      // ignore a limit of descriptors that was set meanwhile.
      default:
        return {};
    }
    return made;
  }

  /// Holds the descriptor open, if the operation has one, and returns the error that ends it before it begins.
  [[nodiscard]] std::error_code begin(std::optional<descriptor::operation_guard>& guard) const noexcept {
    if (op_.on_ != nullptr && !guard.emplace(*op_.on_)) {
      return io_error::closed;
    }
    if (op_.offset_ > std::uint64_t{std::numeric_limits<::off_t>::max()}) {
      return std::make_error_code(std::errc::invalid_argument);  // some calls take -1 for the position of the file
    }
    return reason_to_stop(deadline_);
  }
  [[nodiscard]] int native() const noexcept { return op_.on_ != nullptr ? op_.on_->native() : -1; }

  /// Tries what never waits: sockets, and the page cache. Returns -EAGAIN if that is not enough.
  [[nodiscard]] std::int64_t attempt_at_once() noexcept {
    const bool cached = op_.kind_ == kind::read_at && !is_direct();
    if (!cached && op_.kind_ != kind::receive) {
      return -EAGAIN;
    }
    if (op_.kind_ == kind::receive && op_.on_->took_all_.load(platform::memory_order_relaxed)) {
      return -EAGAIN;  // probably; the kernel looks before it waits
    }
    for (;;) {
      const std::int64_t outcome =
          cached ? result_of_call(platform::system::preadv2(native(), parts().data(), count(),
                                                            static_cast<::off_t>(op_.offset_), RWF_NOWAIT))
                 : call(native());
      if (outcome >= 0) {
        op_.on_->count_unsuspended(io_direction::read);
        note_received(outcome);
      }
      if (outcome != -EINTR) {
        return cached && detail::wants_another_call(outcome) ? -EAGAIN : outcome;
      }
    }
  }

  [[nodiscard]] result<std::int64_t> result_of(std::int64_t outcome) const noexcept {
    return outcome >= 0 ? result<std::int64_t>(outcome) : fail(error_of_call(outcome, memory()));
  }

  /// Returns the text of a dump for a fiber that waits.
  [[nodiscard]] const char* what_is_awaited() const noexcept {
    return op_.kind_ == kind::receive ? "readable descriptor"
           : op_.kind_ == kind::send  ? "writable descriptor"
                                      : "file";
  }

  /// Lets the engine carry it out, unless that is not possible.
  [[nodiscard]] std::optional<result<std::int64_t>> by_engine(kernel_request request) noexcept {
    std::optional<descriptor::operation_guard> guard;
    if (const std::error_code reason = begin(guard)) {
      return fail(reason);
    }
    if (const std::int64_t outcome = attempt_at_once(); outcome != -EAGAIN) {
      return result_of(outcome);
    }
    if (op_.on_ != nullptr) {
      request.descriptor = native();
    }
    const detail::kernel_access access(request);
    access.begin();
    completion under_way(request);
    const request_of_descriptor known(op_.on_, under_way);
    if (op_.kind_ == kind::receive && op_.on_->is_redirected(io_direction::read, descriptor::caller::any))
        [[unlikely]] {
      return fail(io_error::closed);
    }
    const std::optional<completion::ending> end = under_way.run(deadline_, what_is_awaited());
    if (!end || (!end->cancelled && (end->result == -EAGAIN || end->result == -EINTR))) {
      return {};
    }
    if (end->cancelled) {
      return fail(end->why == wake_reason::notified ? make_error_code(io_error::closed)
                                                    : make_error_code(detail::error_of(end->why)));
    }
    access.end(end->result);
    note_received(end->result);
    return result_of(end->result);
  }

  /// A receive that got less than it could has probably taken everything.
  void note_received(std::int64_t bytes) noexcept {
    if (op_.kind_ == kind::receive) {
      const bool all = bytes > 0 && static_cast<std::size_t>(bytes) < op_.memory_.iov_len;
      op_.on_->took_all_.store(all, platform::memory_order_relaxed);
    }
  }

  /// Makes the call on a thread of the blocking pool, unless the page cache has what it wants.
  [[nodiscard]] result<std::int64_t> in_pool() noexcept {
    std::optional<descriptor::operation_guard> guard;
    if (const std::error_code reason = begin(guard)) {
      return fail(reason);
    }
    std::int64_t outcome = attempt_at_once();
    if (outcome == -EAGAIN) {
      try {
        outcome = blocking([&]() noexcept {
          std::int64_t got;
          do {
            got = call(native());
          } while (got == -EINTR && op_.kind_ != kind::call);
          return got;
        });
      } catch (const std::system_error& refused) {  // no thread for it
        return fail(refused.code());
      } catch (const std::bad_alloc&) {  // for the text of that error
        return fail(std::make_error_code(std::errc::not_enough_memory));
      }
    }
    return result_of(outcome);
  }

  const operation& op_;
  const platform::time_point deadline_;
  bool begun_ = false;                ///< of a connect
  int target_ = -1;                   ///< of a splice
  result<std::int64_t> moved_ = {0};  ///< of a splice
};

result<std::int64_t> perform(const operation& what, time_limit deadline) noexcept {
  this_fiber::preemption_point();
  return operation_runner(what, deadline).run();
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
