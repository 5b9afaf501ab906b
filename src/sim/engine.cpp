// The engine of a worker in an exploration: no descriptors, only the wake-up.
#include "pirn/fiber/engine.hpp"

#include <system_error>

namespace pirn::inline PIRN_ABI {

namespace {

class sim_engine final : public engine {
 public:
  readiness* attach(int /*descriptor*/, std::error_code& error) noexcept override {
    error = std::make_error_code(std::errc::not_supported);
    return nullptr;
  }
  void detach(readiness* /*handle*/) noexcept override {}
  void poll(platform::time_point deadline) noexcept override {
    if (deadline > platform::now()) {
      while (told_.load(platform::memory_order_acquire) == 0 && platform::futex_wait(told_, 0, deadline)) {
      }
    }
    told_.store(0, platform::memory_order_release);
  }
  void notify() noexcept override {
    told_.store(1, platform::memory_order_release);
    platform::futex_wake(&told_, 1);
  }

 private:
  platform::atomic<std::uint32_t> told_{0};
};

}  // namespace

/// By the name of the one that other builds have, so that nothing else differs.
std::unique_ptr<engine> make_epoll_engine() { return std::make_unique<sim_engine>(); }

}  // namespace pirn::inline PIRN_ABI
