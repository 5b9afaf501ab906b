// Programs: their pipes, their end, and what they must not inherit.
#include "pirn/io/process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pirn/fiber/runtime.hpp"
#include "stack/support.hpp"

namespace {

using namespace std::chrono_literals;
using pirn::io_error;
using pirn::pipe_end;
using pirn::process;
using words = std::vector<std::string>;

std::chrono::steady_clock::time_point in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

std::string all_of(pipe_end& from) {
  std::string text;
  char part[512];
  for (;;) {
    const auto got = from.read(part, sizeof part, in(10s));
    EXPECT_TRUE(got);
    if (!got || *got == 0) {
      return text;
    }
    text.append(part, *got);
  }
}

process start(const words& arguments, const process::options& how) {
  auto made = process::spawn(arguments, how);
  EXPECT_TRUE(made) << made.error().message();
  return made ? std::move(*made) : process();
}
process shell(const std::string& script, const process::options& how) { return start({"sh", "-c", script}, how); }

/// Returns the children of this process, including ended ones that were not waited for. The program that has started
/// this one may have given it some.
std::set<std::string> children() {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::string about;
    std::getline(std::ifstream(entry.path() / "stat"), about);
    const std::size_t name_end = about.rfind(')');  // behind it are the state and the parent
    if (name_end != std::string::npos && about.substr(name_end + 4).starts_with(std::to_string(::getpid()) + ' ')) {
      found.insert(entry.path().filename());
    }
  }
  return found;
}

/// Runs a body as a fiber and as a plain thread.
template <class Body>
void both_ways(Body body) {
  pirn::runtime({.workers = 1}).run(body);
  body();
}

TEST(process, reads_and_writes_by_pipes) {
  both_ways([] {
    process cat = start({"cat"}, {.input = process::source::pipe(), .output = process::source::pipe()});
    EXPECT_TRUE(cat.input.write("hello"));
    char text[8];
    EXPECT_EQ(cat.output.read(text, sizeof text, in(10s)), 5u);
    EXPECT_EQ(cat.wait(in(1ms)).error(), io_error::timed_out);
    cat.input.close();
    EXPECT_EQ(all_of(cat.output), "");
    EXPECT_TRUE(cat.wait(in(10s)).value().success());
    EXPECT_TRUE(cat.wait().value().success());
    EXPECT_EQ(cat.kill().error(), std::errc::no_such_process);
  });
}

TEST(process, reads_what_another_one_writes) {
  both_ways([] {
    process first = start({"echo", "hello"}, {.output = process::source::pipe()});
    process last = start({"tr", "a-z", "A-Z"},
                         {.input = process::source::of(first.output.native()), .output = process::source::pipe()});
    EXPECT_NE(::fcntl(first.output.native(), F_GETFL) & O_NONBLOCK, 0) << "a read here would block its worker";
    first.output.close();
    EXPECT_EQ(all_of(last.output), "HELLO\n");
    EXPECT_TRUE(first.wait_or_kill(in(10s)).value().success());
    EXPECT_TRUE(last.wait_or_kill(in(10s)).value().success());
  });
}

TEST(process, gets_a_blocking_end_of_any_pipe) {
  both_ways([] {
    auto [from, to] = pipe_end::make_pair().value();
    process writes = start({"sh", "-c", "sleep 0.05; echo late"}, {.output = process::source::of(to.native())});
    process reads = start({"cat"}, {.input = process::source::of(from.native()), .output = process::source::pipe()});
    from.close();
    to.close();
    EXPECT_EQ(all_of(reads.output), "late\n") << "it does not wait for the other program";
    EXPECT_TRUE(writes.wait_or_kill(in(10s)).value().success());
    EXPECT_TRUE(reads.wait_or_kill(in(10s)).value().success());
  });
}

TEST(process, refuses_a_socket_that_does_not_block) {
  both_ways([] {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    pirn::descriptor here(ends[0]);
    const pirn::descriptor there(ends[1]);
    const process::options how = {.input = process::source::of(ends[1]), .output = process::source::pipe()};
    const auto refused = process::spawn(words{"cat"}, how);
    EXPECT_EQ(refused.error(), std::errc::invalid_argument);
    EXPECT_EQ(refused.error().message(), "give a non-blocking socket to cat: Invalid argument");
    EXPECT_EQ(::fcntl(ends[1], F_SETFL, 0), 0);
    process cat = start({"cat"}, how);
    EXPECT_EQ(here.write("hello", 5), 5u);
    here.close();
    EXPECT_EQ(all_of(cat.output), "hello");
    EXPECT_TRUE(cat.wait_or_kill(in(10s)).value().success());
  });
}

TEST(process, says_how_it_ended) {
  both_ways([] {
    process seven = shell("exit 7", {});
    EXPECT_EQ(seven.wait(in(10s)).value().exit_code, 7);
    process killed = shell("kill -USR1 $$", {});
    EXPECT_EQ(killed.wait(in(10s)).value().signal, SIGUSR1);
    EXPECT_EQ(process().wait().error(), io_error::closed);
  });
}

TEST(process, that_cannot_be_started_is_named) {
  both_ways([] {
    const auto before = children();
    EXPECT_EQ(process::spawn(words{"no_such_program"}, {}).error().message(),
              "start no_such_program: No such file or directory");
    EXPECT_EQ(process::spawn(words{"/tmp"}, {}).error().message(), "start /tmp: Permission denied");
    EXPECT_EQ(process::spawn(words{"true"}, {.folder = "/no/such"}).error().message(),
              "start a program in /no/such: No such file or directory");
    EXPECT_EQ(process::spawn({}, {}).error(), std::errc::invalid_argument);
    EXPECT_EQ(process::spawn(words{"true"}, {.input = process::source::of(-1)}).error(),
              std::errc::bad_file_descriptor);
    EXPECT_EQ(process::spawn(words{"true"}, {}, in(-1ms)).error(), io_error::timed_out);
    EXPECT_EQ(children(), before) << "a child is left";
  });
}

TEST(process, gets_folder_environment_and_errors_in_its_output) {
  both_ways([] {
    const words environment = {"A=b", "PATH=/usr/bin:/bin"};
    process p = shell("pwd; echo $A $HOME; echo bad >&2; cat", {.folder = "/usr",
                                                                .environment = environment,
                                                                .input = process::source::nothing(),
                                                                .output = process::source::pipe(),
                                                                .error = process::source::output()});
    EXPECT_EQ(all_of(p.output), "/usr\nb\nbad\n");
    EXPECT_TRUE(p.wait(in(10s)).value().success());
  });
}

TEST(process, inherits_no_other_descriptor_and_no_mask) {
  both_ways([] {
    const int leaks = ::open("/dev/null", O_RDONLY);  // without O_CLOEXEC
    ::sigset_t all;
    ::sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before);
    process p = shell("ls /proc/$$/fd", {.output = process::source::pipe()});
    // Not by a shell, which may clear the mask.
    process q = start({"grep", "SigBlk", "/proc/self/status"}, {.output = process::source::pipe()});
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::close(leaks);
    EXPECT_EQ(all_of(p.output), "0\n1\n2\n");
    EXPECT_EQ(all_of(q.output), "SigBlk:\t0000000000000000\n");
    EXPECT_TRUE(p.wait(in(10s)));
    EXPECT_TRUE(q.wait(in(10s)));
  });
}

TEST(process, that_is_late_is_killed) {
  both_ways([] {
    const auto before = children();
    process slow = start({"sleep", "100"}, {});
    EXPECT_EQ(slow.wait_or_kill(in(5ms)).value().signal, SIGKILL);
    process polite = start({"sleep", "100"}, {});
    EXPECT_TRUE(polite.kill());
    EXPECT_EQ(polite.wait(in(10s)).value().signal, SIGTERM);
    EXPECT_EQ(children(), before) << "a zombie is left";
  });
}

TEST(process, that_is_dropped_leaves_no_zombie) {
  const auto before = children();
  both_ways([] {
    process p = start({"sleep", "100"}, {});
    const ::pid_t id = p.id();
    p = start({"true"}, {});
    EXPECT_EQ(::kill(id, 0), -1);
    EXPECT_EQ(errno, ESRCH);
  });
  EXPECT_EQ(children(), before);
}

TEST(process, a_stop_ends_the_wait_and_not_the_program) {
  pirn::runtime({.workers = 1}).run([] {
    process p = start({"sleep", "100"}, {});
    pirn::fiber waits = pirn::spawn([&] { EXPECT_EQ(p.wait().error(), io_error::stopped); });
    pirn::this_fiber::yield();
    waits.request_stop();
    waits.join();
    EXPECT_EQ(::kill(p.id(), 0), 0);
  });
}

TEST(process, another_thread_may_kill_it_during_a_wait) {
  pirn::runtime({.workers = 1}).run([] {
    for (int i = 0; i < 20; ++i) {
      process p = start({"sleep", "100"}, {});
      std::thread kills([&p] {
        EXPECT_TRUE(p.kill());
        while (p.kill(0)) {  // until it was waited for
        }
      });
      EXPECT_EQ(p.wait(in(10s)).value().signal, SIGTERM);
      kills.join();
    }
  });
}

TEST(process, a_write_to_one_that_has_ended_raises_no_signal) {
  both_ways([] {
    process p = start({"true"}, {.input = process::source::pipe()});
    EXPECT_TRUE(p.wait(in(10s)));
    EXPECT_EQ(p.input.write("x").error(), std::errc::broken_pipe);
  });
}

TEST(process, that_several_wait_for_tells_each_how_it_ended) {
  pirn::runtime both({.workers = 2});
  for (int i = 0; i < 10; ++i) {
    process p = shell("exit 7", {});
    const auto waits = [&] {
      const auto found = p.wait(in(10s));
      EXPECT_TRUE(found && found->exit_code == 7) << (found ? "another exit code" : found.error().message());
    };
    pirn::fiber one = both.spawn(waits, {.worker = 0});
    pirn::fiber two = both.spawn(waits, {.worker = 1});
    pirn::fiber neighbour = both.spawn(waits, {.worker = 1});
    waits();
    for (pirn::fiber* each : {&one, &two, &neighbour}) {
      each->join();
    }
  }
}

TEST(process, that_is_killed_ends_the_other_waits) {
  pirn::runtime({.workers = 2}).run([] {
    process p = start({"sleep", "100"}, {});
    const auto is_killed = [](const pirn::result<process::status>& found) { return found && found->signal == SIGKILL; };
    pirn::fiber waits = pirn::spawn([&] { EXPECT_TRUE(is_killed(p.wait(in(10s)))); }, {.worker = 1});
    pirn::fiber late = pirn::spawn([&] { EXPECT_TRUE(is_killed(p.wait_or_kill(in(2ms)))); }, {.worker = 1});
    EXPECT_TRUE(is_killed(p.wait_or_kill(in(1ms))));
    waits.join();
    late.join();
  });
}

TEST(process, with_a_group_takes_its_children_with_it) {
  both_ways([] {
    for (const bool dropped : {false, true}) {
      process p = shell("sleep 5 & echo up; wait", {.output = process::source::pipe(), .own_group = true});
      pipe_end output = std::move(p.output);
      char text[4];
      EXPECT_TRUE(output.read_exactly(text, 3, in(10s)));
      EXPECT_TRUE(p.kill(0));
      if (dropped) {
        p = process();
      } else {
        EXPECT_EQ(p.wait_or_kill(in(1ms)).value().signal, SIGKILL);
        EXPECT_EQ(p.kill().error(), std::errc::no_such_process) << "the number may be that of another group now";
      }
      EXPECT_EQ(output.read(text, 1, in(1s)), 0u) << "the sleep holds the pipe";
    }
  });
}

#if !defined(PIRN_TSAN)  // it ends a child of a process with threads itself
TEST(process, is_left_alone_by_a_process_made_by_fork) {
  static process kept;
  kept = start({"sleep", "100"}, {});
  const auto child = stack_test::in_child([] {
    ::alarm(20);
    std::exit(3);  // destroys it
    return 0;
  });
  EXPECT_TRUE(child.exited_with(3)) << child.status << child.error_output;
  const auto running = kept.wait(in(5ms));
  EXPECT_TRUE(!running && running.error() == io_error::timed_out);
  kept = process();
}
#endif

}  // namespace
