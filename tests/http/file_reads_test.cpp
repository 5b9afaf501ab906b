// Files that are shorter than they claim, failing disks, kernels and containers that refuse calls: the answer never has
// a byte that is not in the file.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "http/support.hpp"
#include "pirn/http/static_files.hpp"

namespace {

/// Results of the next calls of a system call, in place of the kernel's.
struct plan {
  std::atomic<int> times{0};
  std::atomic<int> error{0};
  void fail(int with, int how_often) {
    error = with;
    times = how_often;
  }
  bool fails() {
    if (times.load() <= 0 || times.fetch_sub(1) <= 0) {
      return false;
    }
    errno = error;
    return true;
  }
};
plan of_pread;
plan of_openat2;
/// Called between the halves of the next `meanwhile_times` reads of a file.
std::function<void()> meanwhile;
int meanwhile_times = 0;

}  // namespace

// These replace libc's functions in this program.
extern "C" long syscall(long number, ...) noexcept {
  std::va_list list;
  va_start(list, number);
  long given[6];
  for (long& each : given) {
    each = va_arg(list, long);
  }
  va_end(list);
  if (number == SYS_openat2 && of_openat2.fails()) {
    return -1;
  }
  long outcome;
  register long fourth __asm__("r10") = given[3];
  register long fifth __asm__("r8") = given[4];
  register long sixth __asm__("r9") = given[5];
  __asm__ volatile("syscall"
                   : "=a"(outcome)
                   : "a"(number), "D"(given[0]), "S"(given[1]), "d"(given[2]), "r"(fourth), "r"(fifth), "r"(sixth)
                   : "rcx", "r11", "memory");
  if (outcome < 0 && outcome > -4096) {
    errno = static_cast<int>(-outcome);
    return -1;
  }
  return outcome;
}
extern "C" ssize_t pread(int file, void* into, size_t size, off_t offset) {
  if (of_pread.fails()) {
    return -1;
  }
  if (meanwhile_times > 0) {
    --meanwhile_times;
    const ssize_t first = ::syscall(SYS_pread64, file, into, size / 2, offset);
    meanwhile();
    const ssize_t second = ::syscall(SYS_pread64, file, static_cast<char*>(into) + first, size - first, offset + first);
    return first + second;
  }
  return ::syscall(SYS_pread64, file, into, size, offset);
}

namespace {

using namespace test;
namespace http = pirn::http;
namespace fs = std::filesystem;

class folder {
 public:
  folder() {
    char name[] = "/tmp/pirn_file_reads_XXXXXX";
    root = ::mkdtemp(name);
    std::ofstream(root / "small") << std::string(small_size, 's');
    std::ofstream(root / "large") << std::string(large_size, 'l');
    fs::create_directories(root / "sub");
    fs::create_symlink("sub/../small", root / "link");
    fs::create_symlink("../small", root / "sub" / "up");
    fs::create_symlink("/etc/passwd", root / "outside");
    fs::create_symlink("/etc", root / "sub" / "etc");
  }
  ~folder() { fs::remove_all(root); }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;

  static constexpr std::size_t small_size = 20'000;
  static constexpr std::size_t large_size = 8 << 20;
  fs::path root;
};

http::server_options brief() { return {.linger_timeout = 200ms}; }

bool is_all(const std::string& text, char byte) { return text.find_first_not_of(byte) == std::string::npos; }

constexpr std::string_view get_large = "GET /large HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

/// Returns all bytes that arrive before the connection ends. It ends without a reset, which would discard them.
std::string read_to_end(client& c) {
  std::string all;
  char bytes[8192];
  for (;;) {
    const auto got = c.stream.read(bytes, sizeof bytes, in(long_enough));
    if (!got || *got == 0) {
      EXPECT_TRUE(got) << got.error().message();
      return all;
    }
    all.append(bytes, *got);
  }
}

TEST(file_reads, a_file_that_claims_more_than_it_has) {
  const char* const name = "/sys/kernel/uevent_seqnum";
  struct ::stat about{};
  if (::stat(name, &about) != 0 || about.st_size < 100) {
    GTEST_SKIP() << "no " << name;
  }
  with_server<1>(http::static_files("/sys/kernel"), brief(), [](running_server& running) {
    client c(running.at);
    const reply got = c.get("/uevent_seqnum");
    EXPECT_EQ(got.status, 200);
    EXPECT_FALSE(got.body.empty());
    EXPECT_EQ(got.body.find_first_not_of("0123456789\n"), std::string::npos);
    EXPECT_EQ(got.field("ETag"), "");  // nothing distinguishes one content from the next
    EXPECT_EQ(got.field("Last-Modified"), "");
    const std::string size = std::to_string(got.body.size());
    EXPECT_EQ(c.ask("HEAD /uevent_seqnum HTTP/1.1\r\nHost: h\r\n\r\n", false).field("Content-Length"), size);
    const reply part = c.get("/uevent_seqnum", "Range: bytes=1-99\r\n");
    EXPECT_EQ(part.status, 206);
    EXPECT_EQ(part.body.size() + 1, got.body.size());
    EXPECT_TRUE(part.field("Content-Range").ends_with("/" + size)) << part.field("Content-Range");
    EXPECT_EQ(c.get("/uevent_seqnum", "Range: bytes=90-99\r\n").status, 416);
  });
}

TEST(file_reads, a_handler_that_promises_more_than_a_file_has) {
  const folder files;
  const auto answer = [&](const http::request& asked, http::response& response) {
    if (asked.target == "/part") {
      response.status(206).header("Content-Range", "bytes 0-29999/30000");
    }
    response.file(pirn::descriptor(::open((files.root / "small").c_str(), O_RDONLY | O_CLOEXEC)), 0, 30'000);
  };
  with_server<1>(answer, brief(), [](running_server& running) {
    client c(running.at);
    const reply got = c.get("/");
    EXPECT_EQ(got.status, 200);
    EXPECT_EQ(got.body, std::string(folder::small_size, 's'));
    EXPECT_EQ(c.get("/part").status, 500);  // its Content-Range would be wrong
    EXPECT_EQ(c.get("/").status, 200);
  });
}

TEST(file_reads, a_handler_that_could_not_open_its_file) {
  const auto answer = [&](const http::request& asked, http::response& response) {
    const std::uint64_t length = asked.target == "/none" ? 100 : 1'000'000;
    response.file(pirn::descriptor(::open("/nothing/here", O_RDONLY | O_CLOEXEC)), 0, length);
  };
  with_server<1>(answer, brief(), [](running_server& running) {
    client c(running.at);
    for (const char* target : {"/none", "/none_large"}) {
      const reply got = c.get(target);
      EXPECT_EQ(got.status, 500) << target;
      EXPECT_EQ(got.body, "500 Internal Server Error\n");
    }
  });
}

TEST(file_reads, a_read_that_fails_is_a_500_and_one_that_a_signal_ends_is_none) {
  const folder files;
  with_server<1>(http::static_files(files.root.string()), brief(), [](running_server& running) {
    client c(running.at);
    of_pread.fail(EIO, 1);
    const reply failed = c.get("/small");
    EXPECT_EQ(failed.status, 500);
    EXPECT_EQ(failed.body, "500 Internal Server Error\n");
    EXPECT_EQ(failed.field("ETag"), "");
    of_pread.fail(EINTR, 3);
    EXPECT_EQ(c.get("/small").body, std::string(folder::small_size, 's'));
    of_pread.fail(EIO, 1);
    EXPECT_EQ(c.ask("HEAD /small HTTP/1.1\r\nHost: h\r\n\r\n", false).status, 500);
    of_pread.fail(0, 0);
    EXPECT_EQ(c.get("/small", "Range: bytes=0-1\r\n").body, "ss");
  });
  const auto answer = [&](const http::request&, http::response& response) {
    response.file(pirn::descriptor(::open((files.root / "small").c_str(), O_RDONLY | O_CLOEXEC)), 10, 10);
  };
  with_server<1>(answer, brief(), [](running_server& running) {
    client c(running.at);
    of_pread.fail(EIO, 1);
    EXPECT_EQ(c.get("/").status, 500);
    EXPECT_EQ(c.get("/").body, "ssssssssss");
  });
}

/// Overwrites a file with as many of another byte, at a time at which its timestamps can show that.
void write_over(const fs::path& file, char byte, std::size_t size) {
  std::this_thread::sleep_for(20ms);  // the kernel may update timestamps by ticks
  std::fstream(file, std::ios::in | std::ios::out) << std::string(size, byte);
}

TEST(file_reads, a_small_file_that_is_changed_while_it_is_read_is_read_again) {
  const folder files;
  char next = 'a';
  meanwhile = [&] { write_over(files.root / "small", next++, folder::small_size); };
  const auto handler = [&](const http::request&, http::response& response) {
    response.file(pirn::descriptor(::open((files.root / "small").c_str(), O_RDONLY | O_CLOEXEC)), 0, 10'000);
  };
  const std::vector<http::handler> handlers = {http::static_files(files.root.string()), handler};
  for (const http::handler& each : handlers) {
    with_server<1>(each, brief(), [&](running_server& running) {
      client c(running.at);
      for (const std::string_view range : {"", "Range: bytes=0-9999\r\n"}) {
        meanwhile_times = 3;
        const reply got = c.get("/small", range);
        EXPECT_EQ(got.status / 100, 2);
        EXPECT_FALSE(got.body.empty());
        EXPECT_TRUE(is_all(got.body, static_cast<char>(next - 1))) << "two contents in one answer";
        EXPECT_EQ(c.get("/small").field("ETag"), got.field("ETag"));
      }
      meanwhile_times = 100'000;  // a file that changes all the time is never answered
      meanwhile = [&, size = 1'000u]() mutable { fs::resize_file(files.root / "small", ++size); };
      EXPECT_EQ(c.get("/small").status, 503);
      meanwhile_times = 0;
      meanwhile = [&] { write_over(files.root / "small", next++, folder::small_size); };
      meanwhile();
      EXPECT_EQ(c.get("/small").status, 200);
    });
  }
}

TEST(file_reads, a_small_file_that_grows_while_it_is_read_may_become_a_large_one) {
  const folder files;
  with_server<1>(http::static_files(files.root.string()), brief(), [&](running_server& running) {
    client c(running.at);
    meanwhile = [&] { std::ofstream(files.root / "small") << std::string(100'000, 'l'); };
    meanwhile_times = 1;
    EXPECT_EQ(c.get("/small").body, std::string(100'000, 'l'));
    meanwhile = [&] { std::ofstream(files.root / "small") << "tiny"; };
    EXPECT_EQ(c.get("/small").body.size(), 100'000u);
  });
}

/// Returns whether each change of a file after a look at it changes its timestamp (Linux 6.13 and later).
bool times_are_exact(const fs::path& file) {
  for (int i = 0; i < 100; ++i) {
    struct ::stat before{}, after{};
    EXPECT_EQ(::stat(file.c_str(), &before), 0);
    std::fstream(file, std::ios::in | std::ios::out) << 's';
    EXPECT_EQ(::stat(file.c_str(), &after), 0);
    if (before.st_ctim.tv_sec == after.st_ctim.tv_sec && before.st_ctim.tv_nsec == after.st_ctim.tv_nsec) {
      return false;
    }
  }
  return true;
}

TEST(file_reads, a_small_file_that_is_cut_all_the_time) {
  const folder files;
  const bool exact = times_are_exact(files.root / "small");
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    const std::string content(32'000, 's');
    while (!stop) {
      const int file = ::open((files.root / "small").c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
      EXPECT_EQ(::write(file, content.data(), content.size()), static_cast<ssize_t>(content.size()));
      // Within a page: the bytes behind become zeros, which the kernel shows to a read that has already begun.
      EXPECT_EQ(::ftruncate(file, 8'190), 0);
      ::close(file);
    }
  });
  with_server<1>(http::static_files(files.root.string()), brief(), [&](running_server& running) {
    client c(running.at);
    const auto until = std::chrono::steady_clock::now() + 1s;
    int answers = 0, refused = 0, mixed = 0;
    while (std::chrono::steady_clock::now() < until) {
      const reply got = c.get("/small");
      ASSERT_TRUE(got.status == 200 || got.status == 503) << got.status;
      mixed += got.status == 503 || is_all(got.body, 's') ? 0 : 1;
      const reply part = c.get("/small", "Range: bytes=5000-9999\r\n");
      ASSERT_TRUE(part.status == 206 || part.status == 416 || part.status == 503) << part.status;
      mixed += part.status != 206 || is_all(part.body, 's') ? 0 : 1;
      refused += (got.status == 503 ? 1 : 0) + (part.status == 503 ? 1 : 0);
      answers += 2;
    }
    // Where the kernel updates timestamps by ticks, two changes in one tick are not noticed.
    EXPECT_LE(mixed, exact ? 0 : 3 + answers / 50) << "of " << answers;
    EXPECT_LE(refused, answers / 2) << "of " << answers;
  });
  stop = true;
  writer.join();
}

TEST(file_reads, a_large_file_that_is_cut_while_it_is_sent) {
  const folder files;
  with_server<1>(http::static_files(files.root.string()), brief(), [&](running_server& running) {
    client c(running.at);
    c.send(get_large);
    char byte;
    ASSERT_EQ(c.stream.read(&byte, 1, in(long_enough)), 1u);
    fs::resize_file(files.root / "large", 0);
    const std::string all = read_to_end(c);  // too few, which the client notices by the length
    const std::size_t body = all.find("\r\n\r\n") + 4;
    EXPECT_NE(all.find("Content-Length: " + std::to_string(folder::large_size) + "\r\n"), std::string::npos);
    EXPECT_LT(all.size() - body, folder::large_size);
    EXPECT_TRUE(is_all(all.substr(body), 'l'));
  });
}

TEST(file_reads, what_of_a_large_file_waits_in_the_socket_is_what_was_in_the_file) {
  const folder files;
  with_server<1>(http::static_files(files.root.string()), brief(), [&](running_server& running) {
    for (const std::uintmax_t size : {100'000U, 1'000'000U}) {
      fs::resize_file(files.root / "large", size);
      std::ofstream(files.root / "large") << std::string(size, 'l');
      client c(running.at);
      c.send(get_large);
      char byte;
      ASSERT_EQ(c.stream.read(&byte, 1, in(long_enough)), 1u);
      fs::resize_file(files.root / "large", 20'001);  // not at a page's end
      const std::string all = read_to_end(c);
      EXPECT_TRUE(is_all(all.substr(all.find("\r\n\r\n") + 4), 'l'));
    }
  });
}

/// Returns the bytes of the large file that a client gets if it begins to read before `change` and continues after it.
std::string read_beside(running_server& running, const std::function<void()>& change) {
  client c(running.at);
  c.send(get_large);
  char byte;
  EXPECT_EQ(c.stream.read(&byte, 1, in(long_enough)), 1u);
  change();
  const std::string all = read_to_end(c);
  return all.substr(all.find("\r\n\r\n") + 4);
}

TEST(file_reads, a_large_file_that_is_changed_while_it_is_sent) {
  const folder files;
  const fs::path large = files.root / "large";
  with_server<1>(http::static_files(files.root.string()), brief(), [&](running_server& running) {
    std::string got = read_beside(running, [&] { write_over(large, 'x', folder::large_size); });
    EXPECT_LT(got.size(), folder::large_size);
    EXPECT_TRUE(is_all(got, 'l')) << "two contents in one answer";
    got = read_beside(running, [&] {
      write_over(large, 'y', folder::large_size / 2);
      fs::last_write_time(large, fs::file_time_type::clock::now() - 1h);
    });
    EXPECT_LT(got.size(), folder::large_size);
    EXPECT_TRUE(is_all(got, 'x'));
    write_over(large, 'l', folder::large_size);
    // Changes that do not touch the requested bytes: appended bytes, and another file in its place.
    got = read_beside(running, [&] { std::ofstream(large, std::ios::app) << "more"; });
    EXPECT_EQ(got, std::string(folder::large_size, 'l'));
    fs::resize_file(large, folder::large_size);
    got = read_beside(running, [&] {
      std::ofstream(files.root / "other") << "other";
      fs::rename(files.root / "other", large);
    });
    EXPECT_EQ(got, std::string(folder::large_size, 'l'));
  });
}

TEST(file_reads, a_read_of_a_large_file_is_of_one_content) {
  const folder files;
  with_server<1>(http::static_files(files.root.string()), brief(), [&](running_server& running) {
    client c(running.at);
    meanwhile = [&] { std::ofstream(files.root / "large", std::ios::app) << "more"; };
    meanwhile_times = 3;
    EXPECT_EQ(c.get("/large").body, std::string(folder::large_size, 'l'));
    meanwhile_times = 100'000;
    c.send(get_large);
    EXPECT_LT(read_to_end(c).size(), folder::large_size);
    meanwhile_times = 0;
  });
}

TEST(file_reads, a_disk_that_fails_while_a_large_file_is_sent) {
  const folder files;
  with_server<1>(http::static_files(files.root.string()), brief(), [&](running_server& running) {
    client c(running.at);
    c.send(get_large);
    char byte;
    ASSERT_EQ(c.stream.read(&byte, 1, in(long_enough)), 1u);
    of_pread.fail(EIO, 1);
    EXPECT_LT(read_to_end(c).size(), folder::large_size);
    client other(running.at);
    of_pread.fail(EINTR, 5);
    EXPECT_EQ(other.get("/large").body, std::string(folder::large_size, 'l'));
  });
}

/// Returns the status for each target, in a process in which openat2 fails with that error.
std::vector<int> statuses_without_openat2(const folder& files, int error, const std::vector<const char*>& targets) {
  std::vector<int> found;
  for (const char* const target : targets) {
    const pid_t child = ::fork();
    if (child == 0) {
      const http::static_files serve(files.root.string());
      ::sock_filter code[] = {
          BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(::seccomp_data, nr)),
          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      };
      const ::sock_fprog program = {sizeof code / sizeof code[0], code};
      if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
          ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        ::_exit(0);
      }
      http::request asked;
      asked.method = "GET";
      asked.target = target;
      http::response answer;
      serve(asked, answer);
      ::_exit(answer.status() / 100 * 50 + answer.status() % 100);  // which fits
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    const int told = WEXITSTATUS(status);
    found.push_back(told / 50 * 100 + told % 50);
  }
  return found;
}

TEST(file_reads, without_openat2_files_are_served_and_no_others) {
  const folder files;
  const std::vector<const char*> targets = {"/small",   "/sub/../small",   "/sub//./small", "/%2e%2e/small",
                                            "/outside", "/sub/etc/passwd", "/nothing",      "/sub",
                                            "/small/",  "//small"};
  const std::vector<int> first = statuses_without_openat2(files, ENOSYS, targets);
  if (first.front() == 0) {
    GTEST_SKIP() << "no filters of system calls";
  }
  EXPECT_EQ(first, (std::vector<int>{200, 403, 404, 403, 403, 404, 404, 301, 404, 200}));
  EXPECT_EQ(statuses_without_openat2(files, EPERM, targets), first);
  EXPECT_EQ(statuses_without_openat2(files, EACCES, targets), first);
}

TEST(file_reads, what_opening_fails_with_is_told) {
  const folder files;
  const std::vector<std::pair<int, int>> expected = {{EIO, 500},   {EMFILE, 503}, {ENOMEM, 503}, {EAGAIN, 503},
                                                     {EXDEV, 403}, {ELOOP, 403},  {ENOENT, 404}, {ESTALE, 500}};
  for (const auto& [error, status] : expected) {
    const std::vector<int> got = statuses_without_openat2(files, error, {"/small"});
    if (got.front() == 0) {
      GTEST_SKIP() << "no filters of system calls";
    }
    EXPECT_EQ(got.front(), status) << error;
  }
}

int status_of(const http::static_files& serve, const char* target) {
  http::request asked;
  asked.method = "HEAD";
  asked.target = target;
  http::response answer;
  serve(asked, answer);
  return answer.status();
}

TEST(file_reads, what_says_nothing_of_a_file_is_tried_again) {
  const folder files;
  const http::static_files serve(files.root.string());
  for (const int error : {EAGAIN, EINTR}) {
    of_openat2.fail(error, 5);
    EXPECT_EQ(status_of(serve, "/link"), 200) << error;
    EXPECT_EQ(of_openat2.times, 0);
  }
  of_openat2.fail(EAGAIN, 1'000'000);  // but not for ever
  EXPECT_EQ(status_of(serve, "/link"), 503);
  of_openat2.fail(0, 0);
  EXPECT_EQ(status_of(serve, "/link"), 200);
}

TEST(file_reads, a_link_with_dots_is_followed_while_others_rename) {
  const folder files;
  std::atomic<bool> stop{false};
  std::thread renamer([&] {
    const fs::path one = files.root / "one";
    const fs::path two = files.root / "two";
    std::ofstream(one) << "x";
    while (!stop) {
      ASSERT_EQ(std::rename(one.c_str(), two.c_str()), 0);
      ASSERT_EQ(std::rename(two.c_str(), one.c_str()), 0);
    }
  });
  const http::static_files serve(files.root.string());
  int others = 0;
  const auto until = std::chrono::steady_clock::now() + 500ms;
  while (std::chrono::steady_clock::now() < until) {
    for (const char* target : {"/link", "/sub/up"}) {
      others += status_of(serve, target) == 200 ? 0 : 1;
    }
  }
  EXPECT_EQ(others, 0);
  stop = true;
  renamer.join();
}

}  // namespace
