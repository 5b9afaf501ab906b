// A server in a child process, as a user runs it.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "http/support.hpp"
#include "pirn/io/signal_set.hpp"

namespace test {

/// Forks, so it must be made while this process has one thread. `/slow` takes 200 ms, `/large` has 10 MiB.
class child_server {
 public:
  explicit child_server(pirn::http::server_options options = {}) {
    int report[2];
    EXPECT_EQ(::pipe2(report, O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(report[0]);
      ::_exit(serve(report[1], std::move(options)));
    }
    ::close(report[1]);
    EXPECT_EQ(::read(report[0], &at.port, sizeof at.port), static_cast<ssize_t>(sizeof at.port));
    ::close(report[0]);
  }
  ~child_server() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  child_server(const child_server&) = delete;
  child_server& operator=(const child_server&) = delete;

  void signal(int number) const { ::kill(pid_, number); }
  /// Returns the status of waitpid, and stores the resources that the process has used.
  int wait(rusage* used = nullptr) {
    int status = -1;
    ::wait4(std::exchange(pid_, -1), &status, 0, used);
    return status;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::size_t resident_kib() const {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("VmRSS:")) {
        return std::stoul(line.substr(6));
      }
    }
    return 0;
  }

  pirn::endpoint at = loopback();

 private:
  static int serve(int report, pirn::http::server_options options) {
    pirn::signal_set signals({SIGINT, SIGTERM});
    pirn::runtime runtime({.workers = 1});
    return runtime.run([&] {
      auto listener = pirn::tcp_listener::listen(loopback()).value();
      const std::uint16_t port = listener.local_endpoint()->port;
      if (::write(report, &port, sizeof port) != static_cast<ssize_t>(sizeof port)) {
        return 2;
      }
      const std::string large(std::size_t{10} << 20, 'l');
      const auto answer = [&large](const pirn::http::request& asked, pirn::http::response& response) {
        if (asked.target == "/slow") {
          static_cast<void>(pirn::this_fiber::sleep_for(200ms));
        }
        if (asked.target == "/large") {
          response.body(large);
        } else {
          response.body("Hello, world!\n");
        }
      };
      pirn::http::server server(answer, std::move(options));
      pirn::fiber stopper = pirn::spawn([&] {
        if (signals.wait()) {
          server.stop();
        }
      });
      return server.serve(listener) ? 0 : 1;
    });
  }

  pid_t pid_ = -1;
};

}  // namespace test
