// Implements process: a descriptor of the program to wait for, and its status.
#include "pirn/io/process.hpp"

#include <unistd.h>

#include <cerrno>
#include <exception>
#include <system_error>
#include <utility>

#include "io/attempt.hpp"
#include "io/program_start.hpp"
#include "pirn/fiber/blocking.hpp"
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
      ended_(std::exchange(other.ended_, std::nullopt)) {}

process& process::operator=(process&& other) noexcept {
  if (this != &other) {
    end();
    input = std::move(other.input);
    output = std::move(other.output);
    error = std::move(other.error);
    running_ = std::move(other.running_);
    id_ = std::exchange(other.id_, 0);
    ended_ = std::exchange(other.ended_, std::nullopt);
  }
  return *this;
}

process::~process() { end(); }

void process::end() noexcept {
  if (running_.is_open()) {
    static_cast<void>(kill(SIGKILL));
    static_cast<void>(reap(false));
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
    return fail(system_error_of(refused), start.refuses_socket() ? "give a non-blocking socket to" : "start", name);
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
  return made;
}

/// Takes the status of a program that has ended; false if it has not.
result<bool> process::reap(bool at_once) noexcept {
  ::siginfo_t about{};
  const auto take = [&]() noexcept { return detail::take_status(running_.native(), about, at_once); };
  int failed;
  if (at_once) {
    failed = take();
  } else {
    try {
      failed = blocking(take);
    } catch (const std::exception&) {
      failed = take();  // no thread for it; a killed program ends soon
    }
  }
  if (failed != 0) {
    return fail(system_error_of(failed));
  }
  if (about.si_pid == 0) {
    return false;
  }
  ended_ = about.si_code == CLD_EXITED ? status{.exit_code = about.si_status} : status{.signal = about.si_status};
  running_.close();
  return true;
}

result<process::status> process::wait(time_limit deadline) noexcept {
  while (!ended_) {
    if (const result<> ready = running_.wait(io_direction::read, deadline); !ready) {
      return fail(ready.error());
    }
    if (const result<bool> done = reap(true); !done) {
      return fail(done.error());
    }
  }
  return *ended_;
}

result<process::status> process::wait_or_kill(time_limit deadline) noexcept {
  const result<status> usual = wait(deadline);
  if (usual || !running_.is_open()) {
    return usual;
  }
  static_cast<void>(kill(SIGKILL));
  if (const result<bool> done = reap(false); !done) {
    return fail(done.error());
  }
  return *ended_;
}

// A fiber that waits may end it meanwhile, so only the descriptor says whether there is a program.
result<> process::kill(int signal) noexcept {
  const descriptor::syscall send = [](int native, void* argument) noexcept {
    return detail::send_signal(native, *static_cast<int*>(argument));
  };
  const auto sent = running_.invoke(send, &signal);
  if (sent) {
    return {};
  }
  const bool was_started = id_ != 0;
  return fail(was_started && sent.error() == io_error::closed ? std::make_error_code(std::errc::no_such_process)
                                                              : sent.error());
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
