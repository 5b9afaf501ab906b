// Implements process: a descriptor of the program to wait for, and its status.
#include "pirn/io/process.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include "io/attempt.hpp"
#include "io/may_block.hpp"
#include "io/program_start.hpp"
#include "pirn/io/expert/operation.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {

using detail::system_error_of;

bool has_nul(std::span<const std::string> texts) noexcept {
  for (const std::string& text : texts) {
    if (text.find('\0') != std::string::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace

process::process(process&& other) noexcept
    : input(std::move(other.input)),
      output(std::move(other.output)),
      error(std::move(other.error)),
      running_(std::move(other.running_)),
      id_(std::exchange(other.id_, 0)),
      group_(std::exchange(other.group_, 0)),
      parent_(other.parent_),
      ended_(std::exchange(other.ended_, std::nullopt)) {}

process& process::operator=(process&& other) noexcept {
  if (this != &other) {
    end();
    input = std::move(other.input);
    output = std::move(other.output);
    error = std::move(other.error);
    running_ = std::move(other.running_);
    id_ = std::exchange(other.id_, 0);
    group_ = std::exchange(other.group_, 0);
    parent_ = other.parent_;
    ended_ = std::exchange(other.ended_, std::nullopt);
  }
  return *this;
}

process::~process() { end(); }

void process::end() noexcept {
  if (running_.is_open() && parent_ == ::getpid()) {  // a process made by fork leaves the programs of its parent alone
    static_cast<void>(kill_and_reap());
  }
}

file_result<process> process::spawn(std::span<const std::string> arguments, const options& how,
                                    time_limit deadline) noexcept {
  const std::string_view name = arguments.empty() ? std::string_view() : std::string_view(arguments.front());
  const auto failed = [&](int why) { return fail(system_error_of(why), "start", name); };
  if (name.empty() || has_nul(arguments) || has_nul({&how.folder, 1}) ||
      (how.environment && has_nul(*how.environment))) {
    return failed(EINVAL);
  }
  detail::program_start start;
  if (const int refused = start.prepare(arguments, how); refused != 0) {
    return fail(system_error_of(refused), start.action(), name);
  }
  process made;
  made.input = start.take_end(STDIN_FILENO);
  made.output = start.take_end(STDOUT_FILENO);
  made.error = start.take_end(STDERR_FILENO);
  const auto started = perform(operation::call(detail::program_start::run, &start), deadline);
  if (!started) {
    return start.folder_is_missing() ? fail(started.error(), "start a program in", how.folder)
                                     : fail(started.error(), "start", name);
  }
  made.running_ = descriptor(static_cast<int>(*started));
  made.id_ = start.id();
  made.group_ = how.own_group ? start.id() : 0;
  made.parent_ = ::getpid();
  return made;
}

/// Takes the status of a program that has ended, unless another caller has.
std::error_code process::reap() noexcept {
  {
    const platform::spin_guard guard(reaping_);
    ::siginfo_t about{};
    if (ended_) {
      return {};
    }
    if (const int failed = detail::take_status(running_.native(), about); failed != 0) {
      return system_error_of(failed);
    }
    if (about.si_pid == 0) {
      return {};
    }
    ended_ = about.si_code == CLD_EXITED ? status{.exit_code = about.si_status} : status{.signal = about.si_status};
  }
  running_.close();  // which ends other waits
  return {};
}

std::error_code process::kill_and_reap() noexcept {
  static_cast<void>(kill(SIGKILL));
  detail::call_in_pool([this]() noexcept { static_cast<void>(running_.invoke(detail::wait_for_end, nullptr)); });
  return reap();
}

result<process::status> process::wait(time_limit deadline) noexcept {
  std::error_code failed;
  for (;;) {
    {
      const platform::spin_guard guard(reaping_);
      if (ended_) {
        return *ended_;
      }
    }
    if (failed) {
      return fail(failed);
    }
    const result<> ready = running_.wait(io_direction::read, deadline);
    failed = ready ? reap() : ready.error();
  }
}

result<process::status> process::wait_or_kill(time_limit deadline) noexcept {
  const result<status> usual = wait(deadline);
  if (usual || id_ == 0) {
    return usual;
  }
  if (const std::error_code failed = kill_and_reap()) {
    return fail(failed);
  }
  return wait();
}

// A fiber that waits may end it meanwhile, so only the descriptor says whether there is a program.
result<> process::kill(int signal) noexcept {
  struct request {
    process& of;
    int signal;
  } wanted{*this, signal};
  const descriptor::syscall send = [](int native, void* argument) noexcept -> std::int64_t {
    const auto& [of, number] = *static_cast<const request*>(argument);
    if (of.group_ == 0) {
      return detail::send_signal(native, number);
    }
    // Until the program is reaped, which this lock or else other code decides, its number is not that of another group.
    const platform::spin_guard guard(of.reaping_);
    constexpr int only_a_question = 0;
    if (const std::int64_t there = detail::send_signal(native, only_a_question); there < 0) {
      return there;
    }
    const std::int64_t sent = detail::send_signal_to_group(of.group_, number);
    // It may have left its group.
    return sent == -ESRCH || number == SIGKILL ? detail::send_signal(native, number) : sent;
  };
  const auto sent = running_.invoke(send, &wanted);
  if (sent) {
    return {};
  }
  const bool was_started = id_ != 0;
  return fail(was_started && sent.error() == io_error::closed ? std::make_error_code(std::errc::no_such_process)
                                                              : sent.error());
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
