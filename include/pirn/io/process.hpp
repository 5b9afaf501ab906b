// Programs that a fiber starts and waits for.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "pirn/io/file_error.hpp"
#include "pirn/io/pipe.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {
class program_start;
}  // namespace detail

/// A program that was started. It is killed and waited for when it is destroyed, so none is left behind, not even as a
/// zombie; only a process made by fork leaves the programs of its parent alone. Any number of fibers and threads may
/// wait for it and call `kill` at once. Movable while unused.
class process {
 public:
  /// Where a standard descriptor of the program comes from.
  class source {
   public:
    static constexpr source inherited() noexcept { return source(kind::inherited, -1); }  ///< as this program's
    static constexpr source nothing() noexcept { return source(kind::nothing, -1); }      ///< /dev/null
    static constexpr source pipe() noexcept { return source(kind::pipe, -1); }            ///< a pipe to this program
    /// An open descriptor, such as `file::native`; it is only used during `spawn`. Programs expect that it blocks. A
    /// non-blocking pipe or terminal is opened anew for them: `pipe_end::native` joins two programs. A non-blocking
    /// socket is refused with std::errc::invalid_argument.
    static constexpr source of(int native) noexcept { return source(kind::native, native); }
    static constexpr source output() noexcept { return source(kind::output, -1); }  ///< for errors: where output goes

   private:
    friend detail::program_start;
    enum class kind : std::uint8_t { inherited, nothing, pipe, native, output };
    constexpr source(kind what, int native) noexcept : kind_(what), native_(native) {}
    kind kind_;
    int native_;
  };
  /// How to start a program.
  struct options {
    std::string folder = {};                                       ///< the working directory; empty: as this program's
    std::optional<std::span<const std::string>> environment = {};  ///< "NAME=value" each; none: as this program's
    source input = source::inherited();                            ///< what its standard input is
    source output = source::inherited();                           ///< what its standard output is
    source error = source::inherited();                            ///< what its standard error is
    /// Whether it leads a process group: `kill`, `wait_or_kill` and the destructor then reach the programs that it has
    /// started too, as long as it was not waited for. The signals of a terminal's keys do not reach the group.
    bool own_group = false;
  };
  /// How it ended.
  struct status {
    int exit_code = 0;  ///< if no signal ended it
    int signal = 0;     ///< the signal that ended it, or 0
    /// Whether no signal ended it and its exit code is 0.
    [[nodiscard]] bool success() const noexcept { return exit_code == 0 && signal == 0; }
  };

  /// Makes one that was not started: every call fails with io_error::closed.
  process() noexcept = default;
  process(process&& other) noexcept;
  process& operator=(process&& other) noexcept;
  ~process();

  /// Starts a program: its name, looked up in PATH unless it has a slash, and its arguments. It gets the three standard
  /// descriptors and no other, no blocked signal and the usual action for SIGPIPE. Fails with the kernel's error, and
  /// the name of the program or of the working directory, if that is what is missing. Runs in the blocking pool, since
  /// loading a program may take time. The program must not be reaped by others: SIGCHLD is not ignored, and no code
  /// waits for any child.
  [[nodiscard]] static file_result<process> spawn(std::span<const std::string> arguments, const options& how,
                                                  time_limit deadline = platform::never) noexcept;

  /// The ends of the program's pipes; closed where no pipe was wanted. Close `input` so that the program reads the end.
  pipe_end input;
  pipe_end output;  ///< reads what the program writes to its standard output
  pipe_end error;   ///< reads what the program writes to its standard error

  /// Waits until the program has ended, and returns how, to each caller; later calls return the same. Suspension point,
  /// with the errors of `descriptor`; after a stop or a deadline the program runs on.
  [[nodiscard]] result<status> wait(time_limit deadline = platform::never) noexcept;
  /// Waits, and kills the program at a stop or the deadline; returns how it ended.
  [[nodiscard]] result<status> wait_or_kill(time_limit deadline) noexcept;
  /// Sends it a signal. Fails with std::errc::no_such_process if it was waited for. Never hits another program. Any
  /// fiber or thread may call it, also while another one waits.
  result<> kill(int signal = SIGTERM) noexcept;
  /// Returns the number of the process, 0 before `spawn`.
  [[nodiscard]] ::pid_t id() const noexcept { return id_; }

 private:
  [[nodiscard]] std::error_code reap() noexcept;
  [[nodiscard]] std::error_code kill_and_reap() noexcept;
  void end() noexcept;

  descriptor running_;  ///< a pidfd; closed once the program was waited for
  ::pid_t id_ = 0;
  ::pid_t group_ = 0;   ///< the one that it leads, or 0
  ::pid_t parent_ = 0;  ///< the process that has started it
  platform::spinlock reaping_;
  std::optional<status> ended_;  ///< used under the lock
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
