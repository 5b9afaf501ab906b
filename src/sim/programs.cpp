// Programs of an exploration, in place of src/io/program_start.cpp. The descriptor of one is a socket whose peer is
// closed when the program has ended.
#include "pirn/sim/programs.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "detail/system.hpp"
#include "io/attempt.hpp"
#include "io/program_start.hpp"
#include "pirn/sim/thread.hpp"
#include "sim/execution.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace sim::detail {

namespace {

using pirn::detail::program_start;

/// A word that one thread sets and others wait for.
class told {
 public:
  [[nodiscard]] std::uint32_t get() const noexcept {
    if (platform::checked::watching) {
      current->touch(this);
    }
    return word_.load(platform::memory_order_relaxed);
  }
  /// Sets it unless it was set.
  void set(std::uint32_t to) noexcept {
    if (get() == 0) {
      word_.store(to, platform::memory_order_relaxed);
      platform::futex_wake(&word_, 8);
    }
  }
  std::uint32_t wait() const noexcept {
    std::uint32_t found = get();
    for (; found == 0; found = get()) {
      platform::futex_wait(word_, 0);
    }
    return found;
  }

 private:
  platform::signal_atomic<std::uint32_t> word_{0};
};

constexpr std::uint32_t by_exit = 1 << 16;  ///< and the exit code
constexpr std::uint32_t by_signal = 2 << 16;

bool is_ignored(int signal) noexcept {
  switch (signal) {
    case 0:
    case SIGCHLD:
    case SIGCONT:
    case SIGSTOP:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
    case SIGURG:
    case SIGWINCH:
      return true;
    default:
      return false;
  }
}

/// A program that was started.
struct running {
  programs::body body;
  std::vector<std::string> arguments;
  pipe_end ends[program_start::standards];
  void (*cut)(pipe_end&) noexcept = nullptr;  ///< ends a pipe on which the body may be in a call
  ::pid_t id = 0;
  int native = -1;  ///< its descriptor; -1 once it was waited for
  int peer = -1;
  told fate;  ///< how it is to end
  told dead;  ///< how it has ended
  thread runs, ends_it;

  void run() {
    const int code = body({arguments, ends[STDIN_FILENO], ends[STDOUT_FILENO], ends[STDERR_FILENO]});
    fate.set(by_exit | static_cast<std::uint32_t>(code & 0xff));
  }
  void end() {
    const std::uint32_t how = fate.wait();
    for (pipe_end& each : ends) {
      cut(each);
    }
    dead.set(how);
    platform::system::close(peer);
  }
};

}  // namespace

class program_table {
 public:
  explicit program_table(std::map<std::string, programs::body> by_name) : by_name_(std::move(by_name)) {}
  ~program_table() {
    for (const auto& each : all_) {
      if (each->native >= 0) {
        current->fail(outcome::leak, "a program was not waited for: " + each->arguments.front());
      }
      each->fate.set(by_signal | SIGKILL);
      each->runs.join();
      each->ends_it.join();
    }
  }
  program_table(const program_table&) = delete;
  program_table& operator=(const program_table&) = delete;

  [[nodiscard]] const programs::body* find(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found != by_name_.end() ? &found->second : nullptr;
  }
  /// Returns the program of a descriptor, or null.
  [[nodiscard]] running* of(int native) const noexcept {
    return native >= 0 ? find_by(&running::native, native) : nullptr;
  }
  /// Returns the program of a process group, or null.
  [[nodiscard]] running* led_by(::pid_t group) const noexcept { return find_by(&running::id, group); }
  running& add(std::unique_ptr<running> made) {
    made->id = static_cast<::pid_t>(1000 + all_.size());
    return *all_.emplace_back(std::move(made));
  }

 private:
  [[nodiscard]] running* find_by(int running::* member, int value) const noexcept {
    if (platform::checked::watching) {
      current->touch(this);
    }
    for (const auto& each : all_) {
      if (each.get()->*member == value) {
        return each.get();
      }
    }
    return nullptr;
  }

  std::map<std::string, programs::body> by_name_;
  std::vector<std::unique_ptr<running>> all_;
};

namespace {

program_table* table() noexcept { return current != nullptr ? current->programs() : nullptr; }

std::int64_t signal(running* to, int number) noexcept {
  if (to == nullptr) {
    return -ESRCH;
  }
  if (number < 0 || number > SIGRTMAX) {
    return -EINVAL;
  }
  if (!is_ignored(number)) {
    to->fate.set(by_signal | static_cast<std::uint32_t>(number));
  }
  return 0;
}

}  // namespace

}  // namespace sim::detail

namespace sim {

programs::programs(std::map<std::string, body> by_name) {
  if (detail::current == nullptr || detail::current->programs() != nullptr) {
    pirn::detail::fail_contract("sim::programs made outside of an exploration, or beside another one");
  }
  table_ = std::make_unique<detail::program_table>(std::move(by_name));
  detail::current->programs() = table_.get();
}

programs::~programs() { detail::current->programs() = nullptr; }

}  // namespace sim

namespace detail {

struct program_start::state {
  state() { made->cut = &cut; }
  static void cut(pipe_end& of) noexcept {
    const descriptor::syscall call = [](int native, void*) noexcept {
      return result_of_call(platform::system::shutdown(native, SHUT_RDWR));
    };
    static_cast<void>(of.opened_.invoke(call, nullptr));
  }

  std::unique_ptr<sim::detail::running> made = std::make_unique<sim::detail::running>();
  pipe_end kept[standards];
};

program_start::program_start() noexcept : state_(new state) {}
program_start::~program_start() = default;

pipe_end program_start::take_end(int standard) noexcept { return std::move(state_->kept[standard]); }

int program_start::prepare(std::span<const std::string> arguments, const process::options& how) noexcept {
  state_->made->arguments.assign(arguments.begin(), arguments.end());
  const process::source sources[standards] = {how.input, how.output, how.error};
  for (int i = 0; i < standards; ++i) {
    using kind = process::source::kind;
    if (sources[i].kind_ == kind::native && sources[i].native_ < 0) {
      return EBADF;
    }
    if (sources[i].kind_ == kind::output && i != STDERR_FILENO) {
      return EINVAL;
    }
    if (sources[i].kind_ == kind::pipe) {
      auto both = pipe_end::make_pair();
      if (!both) {
        return both.error().value();
      }
      state_->kept[i] = std::move(i == STDIN_FILENO ? both->second : both->first);
      state_->made->ends[i] = std::move(i == STDIN_FILENO ? both->first : both->second);
    }
  }
  return 0;
}

std::int64_t program_start::run(int /*native*/, void* self) noexcept {
  auto& of = *static_cast<program_start*>(self);
  sim::detail::program_table* const all = sim::detail::table();
  const sim::programs::body* const body = all != nullptr ? all->find(of.state_->made->arguments.front()) : nullptr;
  if (body == nullptr) {
    return -ENOENT;
  }
  of.state_->made->body = *body;
  int both[2];
  if (platform::system::socketpair(AF_UNIX, SOCK_STREAM, 0, both) != 0) {
    return -errno;
  }
  sim::detail::running& program = all->add(std::move(of.state_->made));
  program.native = both[0];
  program.peer = both[1];
  of.id_ = program.id;
  try {
    program.ends_it = sim::thread([&program] { program.end(); });
    program.runs = sim::thread([&program] { program.run(); });
  } catch (const std::system_error& error) {
    if (program.ends_it.joinable()) {
      program.fate.set(sim::detail::by_exit);  // which closes the peer
    } else {
      platform::system::close(both[1]);
    }
    program.native = -1;
    platform::system::close(both[0]);
    return -error.code().value();
  }
  return both[0];
}

int take_status(int of, ::siginfo_t& about) noexcept {
  sim::detail::program_table* const all = sim::detail::table();
  sim::detail::running* const program = all != nullptr ? all->of(of) : nullptr;
  if (program == nullptr) {
    return ECHILD;
  }
  if (const std::uint32_t how = program->dead.get(); how != 0) {
    program->native = -1;
    about.si_pid = program->id;
    about.si_code = (how & sim::detail::by_exit) != 0 ? CLD_EXITED : CLD_KILLED;
    about.si_status = static_cast<int>(how & 0xff);
  }
  return 0;
}

std::int64_t wait_for_end(int of, void* /*unused*/) noexcept {
  sim::detail::program_table* const all = sim::detail::table();
  const sim::detail::running* const program = all != nullptr ? all->of(of) : nullptr;
  if (program == nullptr) {
    return -ECHILD;
  }
  program->dead.wait();
  return 0;
}

std::int64_t send_signal(int to, int signal) noexcept {
  sim::detail::program_table* const all = sim::detail::table();
  return sim::detail::signal(all != nullptr ? all->of(to) : nullptr, signal);
}

// A program of an exploration starts no others, so its group has no other member.
std::int64_t send_signal_to_group(::pid_t to, int signal) noexcept {
  sim::detail::program_table* const all = sim::detail::table();
  sim::detail::running* const leader = all != nullptr ? all->led_by(to) : nullptr;
  if (leader != nullptr && leader->native < 0) {
    sim::detail::current->fail(sim::outcome::assertion,
                               "a signal to the group of a program that was waited for may hit another group");
  }
  return sim::detail::signal(leader, signal);
}

}  // namespace detail

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
