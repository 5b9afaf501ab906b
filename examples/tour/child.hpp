// The server process, and the external tools that send requests to it.
#pragma once

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "pirn/net/address.hpp"

extern char** environ;

namespace tour {

/// Returns the output of a shell command without the last line break.
inline std::string output_of(const std::string& command) {
  std::string text;
  // NOLINTNEXTLINE(bugprone-command-processor): the commands are fixed texts of this program.
  if (FILE* const pipe = ::popen(command.c_str(), "re")) {
    char part[4096];
    while (const std::size_t count = std::fread(part, 1, sizeof part, pipe)) {
      text.append(part, count);
    }
    ::pclose(pipe);
  }
  while (text.ends_with('\n')) {
    text.pop_back();
  }
  return text;
}

inline bool is_installed(const std::string& program) {
  return !output_of("command -v " + program + " 2>/dev/null").empty();
}

/// The web server example, which lies beside this program, on a free loopback port.
class server_process {
 public:
  explicit server_process(unsigned workers) {
    program_ = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "web_server";
    int report[2];
    if (::pipe(report) != 0) {
      return;
    }
    ::posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, report[1], 1);
    ::posix_spawn_file_actions_addclose(&actions, report[0]);
    ::posix_spawn_file_actions_addclose(&actions, report[1]);
    std::string name = program_.string();
    std::string count = std::to_string(workers);
    std::string root = program_.parent_path().string();
    std::string words[] = {"--workers", "--port", "0", "--root"};
    char* const arguments[] = {name.data(),     words[0].data(), count.data(), words[1].data(),
                               words[2].data(), words[3].data(), root.data(),  nullptr};
    if (::posix_spawn(&pid_, name.c_str(), &actions, nullptr, arguments, environ) != 0) {
      pid_ = -1;
    }
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(report[1]);
    read_address(report[0]);
    ::close(report[0]);
  }
  ~server_process() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  server_process(const server_process&) = delete;
  server_process& operator=(const server_process&) = delete;

  /// Returns the server's address; none if it did not start.
  [[nodiscard]] const std::optional<pirn::endpoint>& at() const { return at_; }
  [[nodiscard]] const std::filesystem::path& program() const { return program_; }
  [[nodiscard]] std::size_t resident_kib() const {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("VmRSS:")) {
        return std::stoul(line.substr(6));
      }
    }
    return 0;
  }
  /// Asks the server to end, as Ctrl-C does. Returns true if it then exits with 0.
  bool end() {
    int status = -1;
    ::kill(pid_, SIGINT);
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

 private:
  /// Reads the address from "serving DIR on http://ADDRESS:PORT/".
  void read_address(int report) {
    std::string line;
    char next = 0;
    while (::read(report, &next, 1) == 1 && next != '\n') {
      line.push_back(next);
    }
    const auto begin = line.rfind("http://");
    if (begin != line.npos) {
      const auto parsed = pirn::endpoint::parse(line.substr(begin + 7, line.size() - begin - 8));
      at_ = parsed ? std::optional(*parsed) : std::nullopt;
    }
  }

  std::filesystem::path program_;
  pid_t pid_ = -1;
  std::optional<pirn::endpoint> at_;
};

}  // namespace tour
