// The engine that uses io_uring: requests go by a ring, readiness by an epoll instance that the ring watches.
#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "detail/refused.hpp"
#include "fiber/epoll_engine.hpp"
#include "fiber/multishot_receive.hpp"
#include "fiber/provided_buffers.hpp"
#include "fiber/uring.hpp"
#include "pirn/fiber/expert/completion.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

// The tags of other requests than fibers'. Theirs have a generation of at least 1 in the upper half.
constexpr std::uint64_t tag_of_readiness = 0;
constexpr std::uint64_t tag_of_cancel = 1;

}  // namespace

class uring_engine final : public epoll_engine {
 public:
  /// Makes an engine whose ring is not open yet.
  uring_engine() : epoll_engine(half::completion) {}
  [[nodiscard]] bool open(const char*& why) noexcept { return ring_.open(uring::features_left(), why); }

  std::size_t poll(platform::time_point deadline) noexcept override {
    forget_detached();
    begin_in_this_thread();
    ended_ = 0;
    cancel_ended();
    if (!watched_) {
      watch_readiness();
    }
    ::timespec limit{};
    if (deadline != platform::never) {
      limit = time_until(deadline);
    }
    // A full ring has made these requests enter the kernel, and fibers may be ready since.
    const bool wait =
        !ready_ && ended_ == 0 && (deadline == platform::never || limit.tv_sec != 0 || limit.tv_nsec != 0);
    if (wait || ring_.pending() != 0 || ring_.has_news()) {
      enter(wait && !ring_.has_completions(), deadline == platform::never ? nullptr : &limit);
      reap();
    }
    std::size_t events = ended_;
    if (ready_) {
      const ::timespec at_once{};
      const std::size_t signalled = signal_events(&at_once);
      // The ring does not report again what is left over.
      ready_ = signalled == static_cast<std::size_t>(events_at_once);
      events += signalled;
    }
    return events;
  }

  bool submit(completion& what) noexcept override {
    const bool masked = what.request().what == kernel_request::code::send && !ring_.has().send;
    if (masked || (free_ == none && !add_slot())) {
      return false;
    }
    begin_in_this_thread();
    what.slot = take_slot();
    slots_[what.slot].of = &what;
    uring::submission& to = next();
    translate(what.request(), to);
    to.user_data = tag_of(what.slot);
    if (is_of_disk(what.request()) && ++held_back_ == max_held_back) {
      enter(false, nullptr);
    }
    return true;
  }

  void cancel(completion& what) noexcept override { cancel_slot(what.slot); }

  bool begin_receive(multishot_receive& what) noexcept override {
    if (!ring_.has().multishot_receive || (free_ == none && !add_slot())) {
      return false;
    }
    begin_in_this_thread();
    if (buffers_ == nullptr) {
      buffers_ = provided_buffers::make();
      if (buffers_ == nullptr || !ring_.provide(buffers_->array(), provided_buffers::max_count)) {
        buffers_ = nullptr;
        return false;
      }
    }
    what.begin(*this, buffers_);
    what.slot = take_slot();
    slots_[what.slot].receive = &what;
    ++armed_;
    uring::submission& to = next();
    to.opcode = uring::op_recv;
    to.descriptor = what.descriptor;
    to.priority = uring::receive_multishot;
    to.flags = uring::select_buffer;
    to.user_data = tag_of(what.slot);
    return true;
  }

  void end_receives() noexcept override {
    if (armed_ == 0) {
      return;
    }
    for (slot& each : slots_) {
      if (each.receive != nullptr) {
        cancel(*each.receive);
      }
    }
    while (armed_ != 0) {
      enter(!ring_.has_completions(), nullptr);
      reap();
    }
  }

  bool has_submissions() const noexcept override { return ring_.pending() != 0 || has_ended(); }

  std::uint64_t overflows() const noexcept override { return ring_.overflows(); }

 private:
  static constexpr std::uint32_t none = ~0u;
  /// How many requests of files gather before the kernel gets them. With more, the disk ends all of them at once and is
  /// idle while the fibers make the next ones.
  static constexpr std::uint32_t max_held_back = 4;
  /// The kernel's name of a request: the index of a slot, and how often the slot was used.
  struct slot {
    completion* of = nullptr;              ///< this, or
    multishot_receive* receive = nullptr;  ///< that
    std::uint32_t generation = 1;
    std::uint32_t next_free = none;
  };

  [[nodiscard]] static bool is_of_disk(const kernel_request& what) noexcept {
    return what.what == kernel_request::code::read_at || what.what == kernel_request::code::write_at;
  }

  [[nodiscard]] std::uint64_t tag_of(std::uint32_t index) const noexcept {
    return std::uint64_t{slots_[index].generation} << 32 | index;
  }

  [[nodiscard]] bool add_slot() noexcept {
    try {
      slots_.emplace_back();
    } catch (const std::bad_alloc&) {
      return false;
    }
    free_ = static_cast<std::uint32_t>(slots_.size() - 1);
    return true;
  }

  /// Returns the number of a slot. There is a free one.
  [[nodiscard]] std::uint32_t take_slot() noexcept {
    const std::uint32_t index = free_;
    free_ = slots_[index].next_free;
    return index;
  }

  void free_slot(std::uint32_t index) noexcept {
    slot& place = slots_[index];
    place.of = nullptr;
    place.receive = nullptr;
    ++place.generation;
    place.generation += place.generation == 0 ? 1 : 0;
    place.next_free = free_;
    free_ = index;
  }

  void cancel_slot(std::uint32_t index) noexcept {
    const std::uint64_t tag = tag_of(index);
    uring::submission& to = next();
    to.opcode = uring::op_async_cancel;
    to.flags = ring_.has().skip_success ? uring::skip_success : 0;
    to.address = tag;
    to.user_data = tag_of_cancel;  // it fails if the request has just ended, or runs and may end soon
  }

  void cancel(multishot_receive& what) noexcept override { cancel_slot(what.slot); }

  /// The kernel accepts requests of one thread only: that of the worker, which may not be the engine's maker.
  void begin_in_this_thread() noexcept {
    if (!begun_) [[unlikely]] {
      begun_ = true;
      if (const int error = ring_.enable()) {
        platform::refused("io_uring_register", error, "the worker could not use its ring");
      }
    }
  }

  void watch_readiness() noexcept {
    uring::submission& to = next();
    to.opcode = uring::op_poll_add;
    to.descriptor = epoll();
    to.operation_flags = POLLIN;
    to.length = ring_.has().multishot_poll ? uring::poll_multishot : 0;
    to.user_data = tag_of_readiness;
    watched_ = true;
  }

  /// Returns a place for a request.
  [[nodiscard]] uring::submission& next() noexcept {
    uring::submission* place = ring_.next();
    while (place == nullptr) {
      enter(false, nullptr);
      reap();  // with no room for completions the kernel takes no requests
      place = ring_.next();
    }
    return *place;
  }

  void reap() noexcept {
    ring_.reap([this](const uring::completion_entry& entry) {
      ++ended_;
      conclude(entry);
    });
  }

  void enter(bool wait, const ::timespec* limit) noexcept {
    held_back_ = 0;
    const int error = ring_.enter(wait, limit);
    if (ring_.lost_one()) {
      platform::refused("io_uring", ENOMEM, "a fiber would wait for ever for a request whose end is lost");
    }
    // Interrupted, or short of memory for a while: requests that are pending stay so.
    if (error != 0 && error != EINTR && error != EAGAIN && error != EBUSY) {
      platform::refused("io_uring_enter", error,
                        error == EBADF ? "the program has closed the engine's descriptor, which it does not own"
                                       : "a worker without ready fibers would spin forever");
    }
  }

  void conclude(const uring::completion_entry& entry) noexcept {
    if (entry.user_data == tag_of_readiness) {
      ready_ = true;
      watched_ = (entry.flags & uring::more_follow) != 0;
      return;
    }
    if (entry.user_data == tag_of_cancel) {
      return;
    }
    const auto index = static_cast<std::uint32_t>(entry.user_data);
    if (index >= slots_.size() || tag_of(index) != entry.user_data) {
      platform::refused("io_uring", EPROTO, "the kernel has ended a request twice");
    }
    if (multishot_receive* const receive = slots_[index].receive) {
      received(*receive, entry);
      return;
    }
    completion& of = *slots_[index].of;
    free_slot(index);
    of.complete(entry.result);
  }

  void received(multishot_receive& by, const uring::completion_entry& entry) noexcept {
    const bool more = (entry.flags & uring::more_follow) != 0;
    std::int32_t result = entry.result;
    arrived_bytes* bytes = nullptr;
    if ((entry.flags & uring::has_buffer) != 0) {
      const auto size = static_cast<std::uint32_t>(std::max(result, 0));
      bytes = &buffers_->filled(entry.flags >> uring::buffer_shift, size);
      if (size == 0) {
        buffers_->give_back(*std::exchange(bytes, nullptr));
      }
    }
    if (result == -ENOBUFS) {
      buffers_->grow();
    }
    if (result == -EINVAL && !receive_is_known_) {  // a kernel that knows buffers, but not this receive
      ring_.give_up_multishot_receive();
      result = -ENOBUFS;
    }
    receive_is_known_ |= more;
    if (!more) {
      free_slot(by.slot);
      --armed_;
    }
    by.arrived(bytes, result > 0 ? -ECANCELED : result, more);
  }

  void translate(const kernel_request& from, uring::submission& to) const noexcept {
    to.descriptor = from.descriptor;
    to.address = reinterpret_cast<std::uintptr_t>(from.address);
    to.length = from.size;
    to.offset = from.offset;
    to.operation_flags = from.flags;
    switch (from.what) {
      case kernel_request::code::receive:
        to.opcode = uring::op_recv;
        // With its first attempt, though the fiber has found nothing a moment ago: where several wait for one socket,
        // the kernel wakes one of those that skip it for all bytes of a write, and the others wait on.
        break;
      case kernel_request::code::send:
        to.opcode = uring::op_send;
        break;
      case kernel_request::code::read_at:
        to.opcode = uring::op_readv;
        break;
      case kernel_request::code::write_at:
        to.opcode = uring::op_writev;
        break;
      case kernel_request::code::sync:
        to.opcode = uring::op_fsync;
        break;
      case kernel_request::code::open:
        to.opcode = uring::op_openat;
        break;
      case kernel_request::code::stat:
        to.opcode = uring::op_statx;
        to.offset = reinterpret_cast<std::uintptr_t>(from.second);
        break;
    }
  }

  uring::ring ring_;
  std::shared_ptr<provided_buffers> buffers_;
  std::vector<slot> slots_;
  std::uint32_t armed_ = 0;  ///< multishot receives
  bool receive_is_known_ = false;
  std::uint32_t free_ = none;
  std::size_t ended_ = 0;        ///< completions since the last poll began
  std::uint32_t held_back_ = 0;  ///< requests of files since the kernel was entered
  bool begun_ = false;
  bool watched_ = false;  ///< the ring reports when the epoll instance becomes ready
  bool ready_ = false;    ///< it may have events
};

}  // namespace detail

std::unique_ptr<engine> make_uring_engine(const char*& why) {
  auto made = std::make_unique<detail::uring_engine>();
  return made->open(why) ? std::move(made) : nullptr;
}

const char* uring_refusal() noexcept {
  // A sandbox may allow a ring and refuse its use.
  uring::ring tried;
  const char* why = nullptr;
  if (!tried.open(uring::features_left(), why)) {
    return why;
  }
  if (tried.enable() != 0) {
    return "the kernel does not let a thread use its ring";
  }
  uring::submission* const nothing = tried.next();
  nothing->user_data = 1;
  bool done = false;
  if (tried.enter(true, nullptr) == 0) {
    tried.reap([&](const uring::completion_entry& entry) { done = entry.user_data == 1 && entry.result == 0; });
  }
  return done ? nullptr : "the kernel does not carry out a request";
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
