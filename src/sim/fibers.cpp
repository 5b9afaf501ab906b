// Descriptions of fibers for reports; the only part of the exploration that knows fibers.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "fiber/deadlock_watch.hpp"
#include "fiber/dump_print.hpp"
#include "pirn/stack/expert/guarded_pool.hpp"
#include "sim/execution.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

namespace {

/// Sorts the fibers of each worker by their numbers. They come in the order of memory, which differs between processes.
std::string sorted(const std::string& text) {
  struct part {
    std::uint64_t worker, fiber;
    std::string lines;
  };
  std::vector<part> parts;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    constexpr std::string_view fiber = "  fiber ";
    if (line.starts_with("  worker ") || parts.empty()) {
      parts.push_back({parts.empty() ? 0 : parts.back().worker + 1, 0, {}});
    } else if (line.starts_with(fiber)) {
      parts.push_back({parts.back().worker, std::strtoull(line.c_str() + fiber.size(), nullptr, 10), {}});
    }
    parts.back().lines += line + "\n";
  }
  std::ranges::sort(parts, {}, [](const part& each) { return std::pair(each.worker, each.fiber); });
  std::string all;
  for (const part& each : parts) {
    all += each.lines;
  }
  return all;
}

}  // namespace

std::string describe_fibers() {
  const int file = memfd_create("pirn-sim", MFD_CLOEXEC);
  if (file < 0) {
    return {};
  }
  {
    pirn::detail::message out(file);
    pirn::detail::begin_dump();
    pirn::detail::for_each_worker([&](pirn::detail::worker& each) { pirn::detail::print_fibers(each, out, nullptr); });
    out.flush();
  }
  std::string text(static_cast<std::size_t>(lseek(file, 0, SEEK_CUR)), '\0');
  const ssize_t length = pread(file, text.data(), text.size(), 0);
  text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  close(file);
  return sorted(text);
}

platform::time_point next_timer(platform::time_point now) {
  const platform::quiet unseen;
  platform::time_point nearest = platform::never;
  pirn::detail::for_each_worker([&](pirn::detail::worker& each) {
    const platform::time_point next = each.timers.next();
    nearest = next > now ? std::min(nearest, next) : nearest;
  });
  return nearest;
}

std::string describe_cycle() {
  const platform::quiet unseen;
  return pirn::detail::describe_present_cycle();
}

void forget_runtimes() noexcept { pirn::detail::registered_runtimes = nullptr; }

std::size_t stacks_in_use() {
  const platform::quiet unseen;
  return default_stack_pool().statistics().in_use;
}

std::pair<std::uint64_t, std::string> fiber_of(const void* worker, const void* at) {
  const auto* const w = static_cast<const pirn::detail::worker*>(worker);
  if (w == nullptr || !w->queue.runs_fiber()) {
    return {};
  }
  const auto* const f = static_cast<const pirn::detail::fiber_control*>(w->queue.running());
  return f->has_on_stack(at) ? std::pair(f->number(), std::string(f->name())) : std::pair<std::uint64_t, std::string>();
}

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
