// Starts programs by posix_spawn, which names its errors and copies no memory.
#include "io/program_start.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <utility>
#include <vector>

#include "io/attempt.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

/// Owns a number until it is passed on; -1 for none.
class number {
 public:
  explicit number(int native = -1) noexcept : native_(native) {}
  number(number&& other) noexcept : native_(other.release()) {}
  number& operator=(number&& other) noexcept {
    std::swap(native_, other.native_);
    return *this;
  }
  ~number() {
    if (native_ >= 0) {
      ::close(native_);
    }
  }
  [[nodiscard]] int get() const noexcept { return native_; }
  [[nodiscard]] int release() noexcept { return std::exchange(native_, -1); }

 private:
  int native_;
};

/// Returns a copy beyond the standard descriptors, so that no dup2 for the program overwrites it before its use.
number beyond_standards(int native) noexcept {
  return number(::fcntl(native, F_DUPFD_CLOEXEC, program_start::standards));
}

/// Returns a copy that blocks, as programs expect, and leaves the open file as it is: other users may rely on its mode.
/// A pipe or terminal is opened anew for that; a socket cannot be, and the call fails with EINVAL.
number copy_that_blocks(int native, const char*& action) noexcept {
  const int flags = ::fcntl(native, F_GETFL);
  struct ::stat about;
  if (flags < 0 || (flags & O_NONBLOCK) == 0 || ::fstat(native, &about) != 0) {
    return beyond_standards(native);
  }
  if (S_ISSOCK(about.st_mode)) {
    action = "give a non-blocking socket to";
    errno = EINVAL;
    return number();
  }
  if (!can_reopen(native, about)) {
    return beyond_standards(native);
  }
  const char* const before = std::exchange(action, "open a non-blocking pipe anew for");
  const number made(open_again(native, flags));
  if (made.get() < 0 || ::fcntl(made.get(), F_SETFL, flags & ~O_NONBLOCK) != 0) {
    return number();
  }
  action = before;
  return beyond_standards(made.get());
}

std::vector<char*> pointers_to(std::span<const std::string> texts) {
  std::vector<char*> made;
  made.reserve(texts.size() + 1);
  for (const std::string& text : texts) {
    made.push_back(const_cast<char*>(text.c_str()));
  }
  made.push_back(nullptr);
  return made;
}

}  // namespace

/// The arguments of posix_spawn.
struct program_start::state {
  state() noexcept {
    error = ::posix_spawn_file_actions_init(&actions);
    add(::posix_spawnattr_init(&attributes));
  }
  ~state() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  state(const state&) = delete;
  state& operator=(const state&) = delete;
  void add(int outcome) noexcept { error = error != 0 ? error : outcome; }

  ::posix_spawn_file_actions_t actions;
  ::posix_spawnattr_t attributes;
  std::vector<char*> argv;
  std::vector<char*> environment;
  char** envp = environ;
  const char* folder = nullptr;
  number given[standards];  ///< for the program; open in this one until the start
  pipe_end kept[standards];
  int error = 0;
};

program_start::program_start() noexcept : state_(new (std::nothrow) state) {}
program_start::~program_start() = default;

pipe_end program_start::take_end(int standard) noexcept { return std::move(state_->kept[standard]); }

int program_start::prepare(std::span<const std::string> arguments, const process::options& how) noexcept {
  if (state_ == nullptr) {
    return ENOMEM;
  }
  state& call = *state_;
  try {
    call.argv = pointers_to(arguments);
    if (how.environment) {
      call.environment = pointers_to(*how.environment);
      call.envp = call.environment.data();
    }
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
  const process::source sources[standards] = {how.input, how.output, how.error};
  for (int i = 0; i < standards; ++i) {
    using kind = process::source::kind;
    number& given = call.given[i];
    switch (sources[i].kind_) {
      case kind::inherited:
        continue;
      case kind::nothing:
        given = number(::open("/dev/null", (i == STDIN_FILENO ? O_RDONLY : O_WRONLY) | O_CLOEXEC));
        if (given.get() >= 0) {
          given = beyond_standards(given.get());
        }
        break;
      case kind::native:
        given = copy_that_blocks(sources[i].native_, action_);
        break;
      case kind::pipe: {
        int both[2];
        if (::pipe2(both, O_CLOEXEC) != 0) {
          return errno;
        }
        const int of_program = i == STDIN_FILENO ? 0 : 1;
        const number theirs(both[of_program]);
        call.kept[i] = pipe_end(descriptor(both[1 - of_program]), pipe_end::way::non_blocking);
        // The two ends are two open files: the program's stays blocking.
        if (::fcntl(both[1 - of_program], F_SETFL, O_NONBLOCK) != 0) {
          return errno;
        }
        given = beyond_standards(theirs.get());
        break;
      }
      case kind::output:
        if (i != STDERR_FILENO) {
          return EINVAL;
        }
        call.add(::posix_spawn_file_actions_adddup2(&call.actions, STDOUT_FILENO, STDERR_FILENO));
        continue;
    }
    if (given.get() < 0) {
      return errno;
    }
    call.add(::posix_spawn_file_actions_adddup2(&call.actions, given.get(), i));
  }
  call.add(::posix_spawn_file_actions_addclosefrom_np(&call.actions, standards));
  if (!how.folder.empty()) {
    call.folder = how.folder.c_str();
    call.add(::posix_spawn_file_actions_addchdir_np(&call.actions, call.folder));
  }
  ::sigset_t none;
  ::sigset_t usual;
  ::sigemptyset(&none);
  ::sigemptyset(&usual);
  ::sigaddset(&usual, SIGPIPE);
  call.add(::posix_spawnattr_setsigmask(&call.attributes, &none));
  call.add(::posix_spawnattr_setsigdefault(&call.attributes, &usual));
  // Without another number the group has that of the program.
  const int group = how.own_group ? POSIX_SPAWN_SETPGROUP : 0;
  call.add(::posix_spawnattr_setflags(&call.attributes,
                                      static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | group)));
  return call.error;
}

// The program stays a zombie until it is waited for, so the number is its own even if it has ended already.
std::int64_t program_start::run(int /*native*/, void* self) noexcept {
  auto& of = *static_cast<program_start*>(self);
  state& call = *of.state_;
  const int refused =
      ::posix_spawnp(&of.id_, call.argv[0], &call.actions, &call.attributes, call.argv.data(), call.envp);
  if (refused != 0) {
    struct ::stat about;
    of.folder_is_missing_ = call.folder != nullptr && ::stat(call.folder, &about) != 0 && errno == refused;
    return -refused;
  }
  const auto native = static_cast<int>(::syscall(SYS_pidfd_open, of.id_, 0));
  if (native < 0) {
    const int failed = errno;
    ::kill(of.id_, SIGKILL);
    ::waitpid(of.id_, nullptr, 0);
    return -failed;
  }
  return native;
}

namespace {

int wait_by_descriptor(int of, ::siginfo_t& about, int flags) noexcept {
  int outcome;
  do {
    outcome = ::waitid(P_PIDFD, static_cast<::id_t>(of), &about, WEXITED | flags);
  } while (outcome != 0 && errno == EINTR);
  return outcome == 0 ? 0 : errno;
}

}  // namespace

int take_status(int of, ::siginfo_t& about) noexcept { return wait_by_descriptor(of, about, WNOHANG); }

std::int64_t wait_for_end(int of, void* /*unused*/) noexcept {
  ::siginfo_t unused{};
  return -wait_by_descriptor(of, unused, WNOWAIT);
}

std::int64_t send_signal(int to, int signal) noexcept {
  return ::syscall(SYS_pidfd_send_signal, to, signal, nullptr, 0) == 0 ? 0 : -errno;
}

std::int64_t send_signal_to_group(::pid_t to, int signal) noexcept { return ::kill(-to, signal) == 0 ? 0 : -errno; }

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
