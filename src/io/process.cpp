// Implements process: posix_spawn in the blocking pool, and a pidfd to wait for.
#include "pirn/io/process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "io/attempt.hpp"
#include "pirn/fiber/blocking.hpp"
#include "pirn/io/expert/operation.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {

using detail::system_error_of;

constexpr int standards = 3;

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
number beyond_standards(int native) noexcept { return number(::fcntl(native, F_DUPFD_CLOEXEC, standards)); }

/// The arguments of posix_spawn.
struct spawn_call {
  spawn_call() noexcept {
    error = ::posix_spawn_file_actions_init(&actions);
    const int attributes_error = ::posix_spawnattr_init(&attributes);
    error = error != 0 ? error : attributes_error;
  }
  ~spawn_call() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  spawn_call(const spawn_call&) = delete;
  spawn_call& operator=(const spawn_call&) = delete;
  void add(int outcome) noexcept { error = error != 0 ? error : outcome; }

  [[nodiscard]] static std::int64_t run(int /*native*/, void* self) noexcept {
    return static_cast<spawn_call*>(self)->start();
  }
  /// Starts the program and returns a pidfd. The program stays a zombie until it is waited for, so the number is its
  /// own even if it has ended already.
  [[nodiscard]] std::int64_t start() noexcept {
    const int refused = ::posix_spawnp(&id, argv[0], &actions, &attributes, argv.data(), envp);
    if (refused != 0) {
      struct ::stat about;
      folder_is_missing = folder != nullptr && ::stat(folder, &about) != 0 && errno == refused;
      return -refused;
    }
    const auto native = static_cast<int>(::syscall(SYS_pidfd_open, id, 0));
    if (native < 0) {
      const int failed = errno;
      ::kill(id, SIGKILL);
      ::waitpid(id, nullptr, 0);
      return -failed;
    }
    return native;
  }

  ::posix_spawn_file_actions_t actions;
  ::posix_spawnattr_t attributes;
  std::vector<char*> argv;
  std::vector<char*> environment;
  char** envp = environ;
  const char* folder = nullptr;
  ::pid_t id = 0;
  int error = 0;
  bool folder_is_missing = false;
};

std::vector<char*> pointers_to(std::span<const std::string> texts) {
  std::vector<char*> made;
  made.reserve(texts.size() + 1);
  for (const std::string& text : texts) {
    made.push_back(const_cast<char*>(text.c_str()));
  }
  made.push_back(nullptr);
  return made;
}

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
  spawn_call call;
  try {
    call.argv = pointers_to(arguments);
    if (how.environment) {
      call.environment = pointers_to(*how.environment);
      call.envp = call.environment.data();
    }
  } catch (const std::bad_alloc&) {
    return failed(ENOMEM);
  }

  process made;
  pipe_end* const ends[standards] = {&made.input, &made.output, &made.error};
  const source sources[standards] = {how.input, how.output, how.error};
  number given[standards];  // open in this program until the start
  for (int i = 0; i < standards; ++i) {
    switch (sources[i].kind_) {
      case source::kind::inherited:
        continue;
      case source::kind::nothing:
        given[i] = number(::open("/dev/null", (i == STDIN_FILENO ? O_RDONLY : O_WRONLY) | O_CLOEXEC));
        if (given[i].get() >= 0) {
          given[i] = beyond_standards(given[i].get());
        }
        break;
      case source::kind::native:
        given[i] = beyond_standards(sources[i].native_);
        break;
      case source::kind::pipe: {
        int both[2];
        if (::pipe2(both, O_CLOEXEC) != 0) {
          return failed(errno);
        }
        const int of_program = i == STDIN_FILENO ? 0 : 1;
        const number theirs(both[of_program]);
        *ends[i] = pipe_end(descriptor(both[1 - of_program]), pipe_end::way::non_blocking);
        // The two ends are two open files: the program's stays blocking.
        if (::fcntl(both[1 - of_program], F_SETFL, O_NONBLOCK) != 0) {
          return failed(errno);
        }
        given[i] = beyond_standards(theirs.get());
        break;
      }
      case source::kind::output:
        if (i != STDERR_FILENO) {
          return failed(EINVAL);
        }
        call.add(::posix_spawn_file_actions_adddup2(&call.actions, STDOUT_FILENO, STDERR_FILENO));
        continue;
    }
    if (given[i].get() < 0) {
      return failed(errno);
    }
    call.add(::posix_spawn_file_actions_adddup2(&call.actions, given[i].get(), i));
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
  call.add(::posix_spawnattr_setflags(&call.attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  if (call.error != 0) {
    return failed(call.error);
  }
  const auto started = perform(operation::call(spawn_call::run, &call), deadline);
  if (!started) {
    return call.folder_is_missing ? fail(started.error(), "start a program in", how.folder)
                                  : fail(started.error(), "start", name);
  }
  made.running_ = descriptor(static_cast<int>(*started));
  made.id_ = call.id;
  return made;
}

/// Takes the status of a program that has ended; false if it has not.
result<bool> process::reap(bool at_once) noexcept {
  ::siginfo_t about{};
  const auto take = [&]() noexcept -> int {
    int outcome;
    do {
      outcome = ::waitid(P_PIDFD, static_cast<::id_t>(running_.native()), &about, WEXITED | (at_once ? WNOHANG : 0));
    } while (outcome != 0 && errno == EINTR);
    return outcome == 0 ? 0 : errno;
  };
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

result<> process::kill(int signal) noexcept {
  if (ended_) {
    return fail(std::make_error_code(std::errc::no_such_process));
  }
  const descriptor::syscall send = [](int native, void* argument) noexcept -> std::int64_t {
    return ::syscall(SYS_pidfd_send_signal, native, *static_cast<int*>(argument), nullptr, 0) == 0 ? 0 : -errno;
  };
  const auto sent = running_.invoke(send, &signal);
  return sent ? result<>() : fail(sent.error());
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
