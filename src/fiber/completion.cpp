// The rules by which a request to the kernel ends: its own end, a stop, a deadline or an interruption, in any order.
#include "pirn/fiber/expert/completion.hpp"

#include <cerrno>

#include "fiber/runtime_state.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {

/// Keeps the running fiber on its worker, whose engine has its request.
class stays_here {
 public:
  explicit stays_here(detail::fiber_control& self) noexcept : self_(self), disabled_(self.disable_migration()) {}
  ~stays_here() {
    if (disabled_) {
      self_.enable_migration();
    }
  }
  stays_here(const stays_here&) = delete;
  stays_here& operator=(const stays_here&) = delete;

 private:
  detail::fiber_control& self_;
  const bool disabled_;
};

}  // namespace

std::optional<completion::ending> completion::run(platform::time_point deadline, const char* what) noexcept {
  detail::worker* const here = detail::current_worker();
  detail::check_not_forked(here->owner);  // a request of the child would go to the ring of the parent
  engine& io = *here->io;
  const stays_here until_the_end(*detail::running_fiber(here));
  if (!io.submit(*this)) {
    return {};
  }
  wake_reason why = wake_reason::notified;
  bool cancelled = false;
  wait_options options{.deadline = deadline, .wakeable_by = awaited::external, .what = what, .object = this};
  for (bool gives_up = false;;) {
    waiter_.lock();
    if (done_) {
      waiter_.unlock();
      break;
    }
    // The request is under way, so its number is its own. It lasts until the kernel says that it has ended: before that
    // it may still write to this stack.
    if ((gives_up || interrupted_) && !cancelled) {
      waiter_.unlock();
      cancelled = true;
      options.deadline = platform::never;
      options.stoppable = false;
      io.cancel(*this);
      continue;
    }
    if (const wake_reason woken = waiter_.wait(options); woken != wake_reason::notified) {
      why = woken;
      gives_up = true;
    }
  }
  // A request that was running when it was cancelled may report an interrupted call.
  const bool nothing_done = result_ == -ECANCELED || result_ == -EINTR;
  return ending{result_, cancelled && nothing_done, why};
}

void completion::interrupt() noexcept {
  waiter_.lock();
  interrupted_ = true;
  waiter_.notify_all_and_unlock();
}

void completion::complete(std::int32_t result) noexcept {
  waiter_.lock();
  done_ = true;
  result_ = result;
  waiter_.notify_all_and_unlock();
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
