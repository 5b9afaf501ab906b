// The engine of a worker in an exploration: the sockets of the network in memory, requests on them, and the wake-up.
#include "pirn/fiber/expert/engine.hpp"

#include <algorithm>
#include <cerrno>
#include <list>
#include <system_error>

#include "detail/system.hpp"
#include "fiber/multishot_receive.hpp"
#include "pirn/fiber/expert/completion.hpp"
#include "sim/disk.hpp"
#include "sim/execution.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {

/// Few and small ones, so that explorations run out of them.
class sim_buffers final : public detail::receive_buffers {
 public:
  static constexpr std::size_t size = 4;

  sim_buffers() noexcept {
    for (detail::arrived_bytes& each : all_) {
      each.home = this;
      give_back(each);
    }
  }
  /// Returns null if all are in use.
  [[nodiscard]] detail::arrived_bytes* take() noexcept {
    const platform::spin_guard guard(lock_);
    detail::arrived_bytes* const taken = free_;
    if (taken != nullptr) {
      free_ = taken->next;
      taken->first = memory_[taken - all_];
    }
    return taken;
  }
  void give_back(detail::arrived_bytes& of) noexcept override {
    const platform::spin_guard guard(lock_);
    of.next = free_;
    free_ = &of;
  }

 private:
  static constexpr std::size_t count = 3;
  platform::spinlock lock_;
  detail::arrived_bytes* free_ = nullptr;
  detail::arrived_bytes all_[count];
  std::byte memory_[count][size];
};

class sim_engine final : public engine {
 public:
  explicit sim_engine(half has) : engine(has) {}

  std::size_t poll(platform::time_point deadline) noexcept override {
    forget_detached();
    cancel_ended();
    bool ended = enter_kernel();
    ended |= finish_files();
    platform::atomic<std::uint32_t>& told = queue_->told;
    for (const entry& each : armed_) {
      deadline = std::min(deadline, each.due);
    }
    if (!ended && deadline > platform::now()) {
      while (told.load(platform::memory_order_acquire) == 0 && platform::futex_wait(told, 0, deadline)) {
      }
      finish_files();
    }
    // As in the kernel, the notified worker sees everything that its notifiers did before. A load could have seen an
    // older word.
    told.exchange(0, platform::memory_order_acq_rel);
    const std::vector<sim::detail::event> events = std::exchange(queue_->events, {});  // in the same step
    for (const sim::detail::event& each : events) {
      if (!is_request(each.of)) {
        signal(*static_cast<readiness*>(each.of), each);
      } else if (const auto armed = find(each.of); armed != armed_.end()) {
        armed->receive != nullptr ? receive(armed) : try_request(armed);
      }
    }
    return events.size();
  }

  void interrupt_poll() noexcept override {
    queue_->told.exchange(1, platform::memory_order_acq_rel);
    platform::futex_wake(&queue_->told, 1);
  }

  bool submit(completion& what) noexcept override {
    const kernel_request::code wanted = what.request().what;
    const bool of_socket = wanted == kernel_request::code::receive || wanted == kernel_request::code::send;
    if (of_socket ? net().find(what.request().descriptor) == nullptr : !is_of_disk(what.request())) {
      return false;
    }
    what.slot = free_slot();
    submitted_.push_back({&what, nullptr, what.slot, ++last_number_});
    return true;
  }

  [[nodiscard]] bool has_submissions() const noexcept override { return !submitted_.empty() || has_ended(); }

  void cancel(completion& what) noexcept override { cancel_slot(what.slot); }

  bool begin_receive(detail::multishot_receive& what) noexcept override {
    if (!completes() || net().find(what.descriptor) == nullptr) {
      return false;
    }
    what.begin(*this, buffers_);
    what.slot = free_slot();
    submitted_.push_back({nullptr, &what, what.slot, ++last_number_});
    return true;
  }

  void end_receives() noexcept override {
    enter_kernel();
    for (auto at = armed_.begin(); at != armed_.end();) {
      const auto each = at++;
      if (each->receive != nullptr) {
        conclude(each, -ECANCELED);
      }
    }
  }

 private:
  /// A request of a fiber, a receive that stays armed, or with two nulls the cancellation of the one with that number.
  struct entry {
    completion* of;
    detail::multishot_receive* receive;
    std::uint32_t slot;                          ///< of one that is under way; the next request has it again
    std::uint32_t number;                        ///< of this request alone
    platform::time_point due = platform::never;  ///< of a file's request: when the disk carries it out
  };
  using place = std::list<entry>::iterator;

  static bool is_of_disk(const kernel_request& what) noexcept {
    using code = kernel_request::code;
    const bool has_path = what.what == code::open || (what.what == code::stat && (what.flags & AT_EMPTY_PATH) == 0);
    return has_path ? sim::detail::disk_state::has(static_cast<const char*>(what.address))
                    : platform::system::is_file(what.descriptor);
  }
  static sim::detail::network& net() noexcept { return sim::detail::current->net(); }

  // The key of a request in events: an odd address, unlike that of a readiness.
  static void* key_of(entry& of) noexcept { return reinterpret_cast<char*>(&of) + 1; }
  static bool is_request(const void* key) noexcept { return (reinterpret_cast<std::uintptr_t>(key) & 1) != 0; }
  [[nodiscard]] place find(const void* key) {
    return std::ranges::find_if(armed_, [key](entry& each) { return key_of(each) == key; });
  }

  /// Begins what was submitted, as io_uring_enter does. Returns whether a request has ended.
  bool enter_kernel() {
    bool ended = false;
    for (const entry& each : std::exchange(submitted_, {})) {
      if (each.receive != nullptr) {
        armed_.push_back(each);
        const auto at = std::prev(armed_.end());
        net().watch(*net().find(each.receive->descriptor), {queue_, key_of(*at)});
        ended |= receive(at);
      } else if (each.of != nullptr) {
        armed_.push_back(each);
        ended |= !arm(std::prev(armed_.end()));
      } else if (const auto at = std::ranges::find(armed_, each.number, &entry::number); at != armed_.end()) {
        // The kernel may be about to finish it at that moment.
        const bool about_to_end = sim::detail::current->choose(2) != 0;
        if (at->receive != nullptr) {
          const std::uint32_t number = at->number;
          if (about_to_end) {
            receive(at);
          }
          if (const auto still = std::ranges::find(armed_, number, &entry::number); still != armed_.end()) {
            conclude(still, -ECANCELED);
          }
        } else if (!about_to_end || !try_request(at)) {
          end(at, -ECANCELED);
        }
        ended = true;
      }
    }
    return ended;
  }

  /// Watches the socket of a request, unless that can be carried out at once.
  [[nodiscard]] bool arm(place at) {
    if (at->of->request().what != kernel_request::code::receive) {
      const bool slow = sim::detail::current->fault(&sim::faults::slow_disk);
      at->due = platform::now() + (slow ? std::chrono::milliseconds(1) : std::chrono::milliseconds(0));
      return true;
    }
    const std::int64_t done = carry_out(at->of->request());
    if (done != -EAGAIN) {
      complete(at, done);
      return false;
    }
    net().watch(*net().find(at->of->request().descriptor), {queue_, key_of(*at)});
    return true;
  }

  /// Carries out the requests of files that are due. Returns whether there was one.
  bool finish_files() {
    bool ended = false;
    for (auto at = armed_.begin(); at != armed_.end();) {
      const auto each = at++;
      ended |= each->due <= platform::now() && try_request(each);
    }
    return ended;
  }

  /// Returns whether the request has ended.
  bool try_request(place at) {
    const std::int64_t done = carry_out(at->of->request());
    if (done == -EAGAIN) {
      return false;
    }
    end(at, done);
    return true;
  }

  void cancel(detail::multishot_receive& what) noexcept override { cancel_slot(what.slot); }

  [[nodiscard]] entry* under_way(std::uint32_t slot) noexcept {
    const auto has_it = [slot](const entry& each) {
      return each.slot == slot && (each.of != nullptr || each.receive != nullptr);
    };
    if (const auto at = std::ranges::find_if(submitted_, has_it); at != submitted_.end()) {
      return &*at;
    }
    const auto at = std::ranges::find_if(armed_, has_it);
    return at != armed_.end() ? &*at : nullptr;
  }

  /// Returns the lowest slot without a request, so that explorations see what a late cancellation of a slot hits.
  [[nodiscard]] std::uint32_t free_slot() noexcept {
    std::uint32_t slot = 1;
    while (under_way(slot) != nullptr) {
      ++slot;
    }
    return slot;
  }

  /// Cancels the request that has the slot now, as the kernel's ring does by the tag that the slot has now.
  void cancel_slot(std::uint32_t slot) noexcept {
    const entry* const of = under_way(slot);
    submitted_.push_back({nullptr, nullptr, slot, of != nullptr ? of->number : 0});
  }

  /// Receives all there is, as the kernel does when a socket becomes readable. Returns whether something was reported.
  bool receive(place at) {
    detail::multishot_receive& into = *at->receive;
    for (bool reported = false;; reported = true) {
      detail::arrived_bytes* const bytes = buffers_->take();
      if (bytes == nullptr) {
        conclude(at, -ENOBUFS);
        return true;
      }
      const std::int64_t got = platform::system::recv(into.descriptor, bytes->first, sim_buffers::size, 0);
      const int error = errno;
      if (got > 0) {
        bytes->left = static_cast<std::uint32_t>(got);
        into.arrived(bytes, 0, true);
        continue;
      }
      buffers_->give_back(*bytes);
      if (got == 0 || error != EAGAIN) {
        conclude(at, got == 0 ? 0 : -error);
        return true;
      }
      return reported;
    }
  }

  void conclude(place at, std::int32_t result) {
    detail::multishot_receive& of = *at->receive;
    net().unwatch(*net().find(of.descriptor), *queue_, key_of(*at));
    armed_.erase(at);
    of.arrived(nullptr, result, false);
  }

  void end(place at, std::int64_t result) {
    if (at->due == platform::never) {
      net().unwatch(*net().find(at->of->request().descriptor), *queue_, key_of(*at));
    }
    complete(at, result);
  }

  void complete(place at, std::int64_t result) {
    completion& of = *at->of;
    armed_.erase(at);
    of.complete(static_cast<std::int32_t>(result));
  }

  static std::int64_t carry_out(const kernel_request& what) noexcept {
    namespace system = platform::system;
    using code = kernel_request::code;
    const auto* const parts = static_cast<const ::iovec*>(what.address);
    const auto* const path = static_cast<const char*>(what.address);
    const auto count = static_cast<int>(what.size), flags = static_cast<int>(what.flags);
    const auto offset = static_cast<::off_t>(what.offset);
    const std::int64_t done = what.what == code::send ? system::send(what.descriptor, what.address, what.size, flags)
                              : what.what == code::receive  ? system::recv(what.descriptor, what.address, what.size, 0)
                              : what.what == code::read_at  ? system::preadv(what.descriptor, parts, count, offset)
                              : what.what == code::write_at ? system::pwritev(what.descriptor, parts, count, offset)
                              : what.what == code::sync     ? system::fsync(what.descriptor)
                              : what.what == code::open     ? system::openat(what.descriptor, path, flags, what.size)
                                                            : system::statx(what.descriptor, path, flags, what.size,
                                                                            static_cast<struct ::statx*>(what.second));
    return done >= 0 ? done : -std::int64_t{errno};
  }

  static void signal(readiness& handle, const sim::detail::event& what) noexcept {
    if (what.hup_or_error) {
      handle.signal_hup_or_error();
    }
    if (what.readable) {
      handle.signal(io_direction::read);
    }
    if (what.writable && handle.reports_writes()) {
      handle.signal(io_direction::write);
    }
  }

  bool begin(readiness& handle, int descriptor, std::error_code& error) noexcept override {
    sim::detail::socket* const found = sim::detail::current != nullptr ? net().find(descriptor) : nullptr;
    if (found == nullptr) {
      // As with epoll, a file cannot be watched, since it is always ready.
      error = std::make_error_code(platform::system::is_file(descriptor) ? std::errc::operation_not_permitted
                                                                         : std::errc::not_supported);
      return false;
    }
    net().watch(*found, {queue_, &handle});
    return true;
  }

  bool begin_writes(readiness& handle, int descriptor, std::error_code& error) noexcept override {
    end(handle, descriptor);
    return begin(handle, descriptor, error);
  }

  void end(readiness& handle, int descriptor) noexcept override {
    net().unwatch(*net().find(descriptor), *queue_, &handle);
  }

  const std::shared_ptr<sim::detail::event_queue> queue_ = std::make_shared<sim::detail::event_queue>();
  const std::shared_ptr<sim_buffers> buffers_ = std::make_shared<sim_buffers>();
  std::vector<entry> submitted_;  ///< since the kernel was entered
  std::list<entry> armed_;        ///< requests that wait for their sockets
  std::uint32_t last_number_ = 0;
};

}  // namespace

// These have the names of the functions in other builds, so that nothing else differs.
std::unique_ptr<engine> make_epoll_engine() { return std::make_unique<sim_engine>(engine::half::readiness_only); }
std::unique_ptr<engine> make_uring_engine(const char*& /*why*/) {
  return std::make_unique<sim_engine>(engine::half::completion);
}
const char* uring_refusal() noexcept { return nullptr; }

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
