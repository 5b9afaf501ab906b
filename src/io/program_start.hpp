// How programs start, get signals and end: by the kernel, or in an exploration by src/sim/programs.cpp.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "pirn/io/process.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// The start of one program: prepared by its caller, and carried out by a thread of the blocking pool.
class program_start {
 public:
  static constexpr int standards = 3;  ///< the standard descriptors

  program_start() noexcept;
  ~program_start();
  program_start(const program_start&) = delete;
  program_start& operator=(const program_start&) = delete;

  /// Makes the pipes and checks the rest. Returns 0 or the number of an error.
  [[nodiscard]] int prepare(std::span<const std::string> arguments, const process::options& how) noexcept;
  /// Passes on this program's end of the pipe for a standard descriptor; a closed one where there is no pipe.
  [[nodiscard]] pipe_end take_end(int standard) noexcept;
  /// Starts the program of a `program_start`. Returns a descriptor that is readable once the program has ended, or a
  /// negated error.
  [[nodiscard]] static std::int64_t run(int native, void* self) noexcept;
  [[nodiscard]] ::pid_t id() const noexcept { return id_; }
  /// The action in which `prepare` has failed, for the error.
  [[nodiscard]] const char* action() const noexcept { return action_; }
  /// Whether an error of `run` is about the working directory.
  [[nodiscard]] bool folder_is_missing() const noexcept { return folder_is_missing_; }

 private:
  struct state;

  std::unique_ptr<state> state_;
  ::pid_t id_ = 0;
  const char* action_ = "start";
  bool folder_is_missing_ = false;
};

/// Takes the status of the program of such a descriptor if it has ended, as waitid(2); otherwise `about.si_pid` is 0.
/// Returns 0 or the number of an error.
[[nodiscard]] int take_status(int of, ::siginfo_t& about) noexcept;
/// Blocks until the program has ended, and leaves its status. Returns 0 or a negated error.
[[nodiscard]] std::int64_t wait_for_end(int of, void* /*unused*/) noexcept;
/// Returns 0 or a negated error.
[[nodiscard]] std::int64_t send_signal(int to, int signal) noexcept;
/// As `send_signal`, but to each program of a process group.
[[nodiscard]] std::int64_t send_signal_to_group(::pid_t to, int signal) noexcept;

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
