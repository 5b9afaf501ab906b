// The engine of a worker in an exploration: the sockets of the network in memory, and the wake-up.
#include "pirn/fiber/expert/engine.hpp"

#include <system_error>

#include "sim/execution.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {

class sim_engine final : public engine {
 public:
  void poll(platform::time_point deadline) noexcept override {
    forget_detached();
    platform::atomic<std::uint32_t>& told = queue_->told;
    if (deadline > platform::now()) {
      while (told.load(platform::memory_order_acquire) == 0 && platform::futex_wait(told, 0, deadline)) {
      }
    }
    // As in the kernel, the notified worker sees everything that its notifiers did before. A load could have seen an
    // older word.
    told.exchange(0, platform::memory_order_acq_rel);
    const std::vector<sim::detail::event> events = std::exchange(queue_->events, {});  // in the same step
    for (const sim::detail::event& each : events) {
      auto* const handle = static_cast<readiness*>(each.of);
      if (each.hup_or_error) {
        handle->signal_hup_or_error();
      }
      if (each.readable) {
        handle->signal(io_direction::read);
      }
      if (each.writable) {
        handle->signal(io_direction::write);
      }
    }
  }

  void unpark_worker() noexcept override {
    queue_->told.exchange(1, platform::memory_order_acq_rel);
    platform::futex_wake(&queue_->told, 1);
  }

 private:
  bool begin(readiness& handle, int descriptor, std::error_code& error) noexcept override {
    sim::detail::socket* const found =
        sim::detail::current != nullptr ? sim::detail::current->net().find(descriptor) : nullptr;
    if (found == nullptr) {
      error = std::make_error_code(std::errc::not_supported);
      return false;
    }
    sim::detail::current->net().watch(*found, {queue_, &handle});
    return true;
  }

  void end(readiness& handle, int descriptor) noexcept override {
    sim::detail::network& net = sim::detail::current->net();
    net.unwatch(*net.find(descriptor), *queue_, &handle);
  }

  const std::shared_ptr<sim::detail::event_queue> queue_ = std::make_shared<sim::detail::event_queue>();
};

}  // namespace

/// Has the name of the function in other builds, so that nothing else differs.
std::unique_ptr<engine> make_epoll_engine() { return std::make_unique<sim_engine>(); }

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
