// Lends the bytes of a socket: those that its engine has received, or else those of one receive into a new buffer,
// which exists only while they are not consumed. A connection that waits has no buffer either way.
#include <sys/socket.h>

#include <algorithm>
#include <new>
#include <utility>

#include "detail/system.hpp"
#include "fiber/multishot_receive.hpp"
#include "fiber/runtime_state.hpp"
#include "io/attempt.hpp"
#include "io/kernel_access.hpp"
#include "pirn/io/descriptor.hpp"
#include "pirn/io/expert/stream_parts.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

using detail::arrived_bytes;
using detail::multishot_receive;

namespace {

/// Releases the lock that `fetch` has taken.
class unlocks_at_end {
 public:
  explicit unlocks_at_end(wait_queue& locked) noexcept : locked_(locked) {}
  ~unlocks_at_end() { locked_.unlock(); }
  unlocks_at_end(const unlocks_at_end&) = delete;
  unlocks_at_end& operator=(const unlocks_at_end&) = delete;

 private:
  wait_queue& locked_;
};

/// Returns an empty view for the end, or the error that is to be reported. With the lock held.
result<read_view> end_of(multishot_receive& from) noexcept {
  const std::int32_t error = std::exchange(from.error, 0);
  return error != 0 ? result<read_view>(fail(detail::system_error_of(error))) : read_view();
}

/// Ends a view.
void end_view(void* lender, std::size_t consumed) noexcept {
  auto& from = *static_cast<multishot_receive*>(lender);
  {
    const platform::spin_guard guard(from.waiters.own_lock());
    from.lent = false;
    from.consume(consumed);
  }
  from.remove_owner();
}

}  // namespace

multishot_receive* descriptor::receives(std::error_code& error) noexcept {
  multishot_receive* of = receives_.load(platform::memory_order_acquire);
  if (of == nullptr) {
    int kind = 0;
    ::socklen_t size = sizeof kind;
    if (platform::system::getsockopt(native(), SOL_SOCKET, SO_TYPE, &kind, &size) != 0 || kind != SOCK_STREAM) {
      error = std::make_error_code(std::errc::operation_not_supported);
      return nullptr;
    }
    auto* const made = new (std::nothrow) multishot_receive(native());
    if (made == nullptr) {
      error = std::make_error_code(std::errc::not_enough_memory);
      return nullptr;
    }
    if (receives_.compare_exchange_strong(of, made, platform::memory_order_acq_rel)) {
      redirect_readers();
      return made;
    }
    made->remove_owner();
  }
  return of;
}

// Each such call looks again for a `lend` once it can be found here: after it is in the list, or attached.
void descriptor::redirect_readers() noexcept {
  const platform::spin_guard guard(attaching_);
  if (readiness* const handle = handle_.load(platform::memory_order_acquire)) {
    handle->signal(io_direction::read);
  }
  for (completion& each : requests_) {
    if (each.request().what == kernel_request::code::receive) {
      each.interrupt();
    }
  }
}

result<read_view> descriptor::lend(time_limit deadline) noexcept {
  const operation_guard guard(*this);
  if (const std::error_code reason = reason_to_refuse(guard, io_direction::read, deadline)) {
    return fail(reason);
  }
  std::error_code refused;
  multishot_receive* const from = receives(refused);
  if (from == nullptr) {
    return fail(refused);
  }
  if (const std::error_code failed = fetch(*from, deadline)) {
    return fail(failed);
  }
  const unlocks_at_end locked(from->waiters);
  const arrived_bytes* const found = from->front();
  if (found == nullptr) {
    return end_of(*from);
  }
  from->lent = true;
  from->add_owner();
  return read_view({found->first, found->left}, from, &end_view);
}

result<std::size_t> descriptor::receive_lent(void* buffer, std::size_t size, platform::time_point deadline) noexcept {
  const operation_guard guard(*this);
  if (const std::error_code reason = reason_to_refuse(guard, io_direction::read, deadline)) {
    return fail(reason);
  }
  multishot_receive& from = *receives_.load(platform::memory_order_acquire);
  if (const std::error_code failed = fetch(from, deadline)) {
    return fail(failed);
  }
  const unlocks_at_end locked(from.waiters);
  const arrived_bytes* const found = from.front();
  if (found == nullptr) {
    const result<read_view> end = end_of(from);
    return end ? result<std::size_t>(0) : fail(end.error());
  }
  const std::size_t count = std::min<std::size_t>(size, found->left);
  std::copy_n(found->first, count, static_cast<std::byte*>(buffer));
  from.consume(count);
  return count;
}

std::error_code descriptor::fetch(multishot_receive& into, platform::time_point deadline) noexcept {
  for (bool counted = false;; counted = true) {
    into.waiters.lock();
    if (into.has_news()) {
      if (counted || !spends_budget(io_direction::read)) {
        break;
      }
      into.waiters.unlock();
      this_fiber::yield();
      continue;
    }
    const bool others_are_there = into.armed_in() != nullptr || into.receiving;
    if (const std::error_code failed =
            others_are_there ? wait_for_arrival(into, deadline) : receive_more(into, deadline)) {
      return failed;
    }
  }
  if (into.lent) {
    into.waiters.unlock();
    return std::make_error_code(std::errc::device_or_resource_busy);
  }
  if (const arrived_bytes* const found = into.front(); found != nullptr && found->home != nullptr) {
    detail::kernel_has_received(native(), found->first, found->left);
  }
  return {};
}

std::error_code descriptor::wait_for_arrival(multishot_receive& at, platform::time_point deadline) noexcept {
  at.check_not_of_parent();
  const detail::worker* const here = detail::current_worker();
  if (here != nullptr && at.armed_in() != here->io.get() && at.waiters.empty()) {
    at.end();  // the engine of this worker receives from then on, unless the other one has a reader too
  }
  if (!is_open()) {
    at.waiters.unlock();
    return io_error::closed;
  }
  unsuspended_[static_cast<int>(io_direction::read)].store(0, platform::memory_order_relaxed);
  const wake_reason why = at.waiters.wait(
      {.deadline = deadline, .wakeable_by = awaited::external, .what = "readable descriptor", .object = this});
  return why != wake_reason::notified ? make_error_code(detail::error_of(why)) : std::error_code{};
}

std::error_code descriptor::receive_more(multishot_receive& into, platform::time_point deadline) noexcept {
  into.receiving = true;
  const bool by_engine = !into.direct;
  into.waiters.unlock();
  if (detail::worker* const here = detail::current_worker(); by_engine && here != nullptr && here->io->completes()) {
    detail::check_not_forked(here->owner);  // a request of the child would go to the ring of the parent
    if (here->io->begin_receive(into)) {
      return {};
    }
  }
  struct request {
    descriptor& of;
    arrived_bytes* got;
  } wanted{*this, nullptr};
  const syscall call = [](int native, void* argument) noexcept -> std::int64_t {
    auto& [of, bytes] = *static_cast<request*>(argument);
    bytes = detail::make_receive_buffer();
    if (bytes == nullptr) {
      return -ENOMEM;
    }
    const std::int64_t got = of.receive_at_once(native, bytes->first, detail::receive_buffer_size);
    if (got <= 0) {
      detail::end_receive_buffer(*std::exchange(bytes, nullptr));
    } else {
      bytes->left = static_cast<std::uint32_t>(got);
    }
    return got;
  };
  const result<std::int64_t> got = repeat(io_direction::read, deadline, call, &wanted, {}, caller::of_lend);
  into.waiters.lock();
  into.receiving = false;
  if (wanted.got != nullptr) {
    into.direct = wanted.got->left == detail::receive_buffer_size;
    into.append(*wanted.got);
  } else if (got) {
    into.at_end = true;
  }
  into.waiters.notify_all_and_unlock();
  return got ? std::error_code{} : got.error();
}

result<> descriptor::wait_lent(multishot_receive& at, platform::time_point deadline) noexcept {
  for (;;) {
    at.waiters.lock();
    if (at.has_news()) {
      at.waiters.unlock();
      count_unsuspended(io_direction::read);
      return {};
    }
    if (at.armed_in() == nullptr && !at.receiving) {
      at.receiving = true;
      at.waiters.unlock();
      const result<> ready = wait_at_socket(io_direction::read, deadline, caller::of_lend);
      at.waiters.lock();
      at.receiving = false;
      at.waiters.notify_all_and_unlock();
      return ready;
    }
    if (const std::error_code reason = wait_for_arrival(at, deadline)) {
      return fail(reason);
    }
  }
}

bool descriptor::ends_receiving() noexcept {
  multishot_receive* const from = receives_.load(platform::memory_order_acquire);
  if (from == nullptr) {
    return true;
  }
  from->waiters.lock();
  if (from->is_of_parent()) [[unlikely]] {
    from->waiters.unlock();
    return true;
  }
  from->end();
  const bool ended = from->armed_in() == nullptr;
  from->waiters.notify_all_and_unlock();
  return ended;
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
