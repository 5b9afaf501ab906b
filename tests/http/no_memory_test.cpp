// A server in which one allocation fails: the answers before that arrive, and its connection ends without a reset.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <thread>

#include "http/support.hpp"

namespace {

std::atomic<bool> armed{false};
thread_local int until_failure = -1;  // allocations of this thread
std::atomic<bool> has_failed{false};

void* allocate(std::size_t size) noexcept {
  if (armed && until_failure >= 0) {
    --until_failure;
    if (until_failure < 0) {
      has_failed = true;
      return nullptr;
    }
  }
  return std::malloc(size);
}

[[maybe_unused]] void* allocate_or_throw(std::size_t size) {
  if (void* const memory = allocate(size)) {
    return memory;
  }
  throw std::bad_alloc();
}

}  // namespace

#if !defined(PIRN_TSAN)  // which has its own operators, and permits no others
// NOLINTBEGIN(misc-new-delete-overloads)
[[gnu::noinline]] void* operator new(std::size_t size) { return allocate_or_throw(size); }
[[gnu::noinline]] void* operator new[](std::size_t size) { return allocate_or_throw(size); }
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
[[gnu::noinline]] void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
// NOLINTEND(misc-new-delete-overloads)
#endif

namespace {

using namespace test;
namespace http = pirn::http;

const std::string get = " HTTP/1.1\r\nHost: h\r\n";

/// Asks for /first, /arm and `third` in one piece, while the first allocation after the second request's handler fails,
/// then the second allocation, and so on until everything is answered because no allocation is left to fail.
void fail_each(const std::string& third, const std::filesystem::path& file = {}) {
#if defined(PIRN_TSAN)
  GTEST_SKIP() << "allocations are ThreadSanitizer's own";
#endif
  std::atomic<int> fails_at{0};
  const auto answer = [&](const http::request& asked, http::response& response) {
    if (asked.target == "/arm") {
      response.body("armed");
      until_failure = fails_at;
    } else if (asked.target == "/file") {
      const int opened = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
      response.file(pirn::descriptor(opened), 0, std::filesystem::file_size(file));
    } else {
      hello(asked, response);
    }
  };
  http::server server(answer);
  auto listener = pirn::tcp_listener::listen(loopback()).value();
  const pirn::endpoint at = *listener.local_endpoint();
  std::thread serving([&] { pirn::runtime({.workers = 1}).run([&] { EXPECT_TRUE(server.serve(listener)); }); });
  bool all_answered = false;
  for (; !all_answered && fails_at < 100; ++fails_at) {
    SCOPED_TRACE(fails_at.load());
    has_failed = false;
    armed = true;
    client c(at);
    std::string three = "GET /first";
    three.append(get).append("\r\nGET /arm").append(get).append("\r\n").append(third);
    c.send(three);
    EXPECT_EQ(c.receive().body, "Hello, world!\n");
    const reply of_second = c.receive();
    EXPECT_TRUE(of_second.body == "armed" || of_second.status == 0) << of_second.status;
    const reply of_third = of_second.status == 0 ? reply() : c.receive();
    armed = false;
    EXPECT_TRUE(of_third.status == 200 || of_third.status == 500 || of_third.status == 0) << of_third.status;
    all_answered = !has_failed;
    EXPECT_TRUE(!all_answered || of_third.status == 200);
    if (of_third.status == 0) {
      EXPECT_TRUE(c.ends_cleanly());
    }
  }
  EXPECT_TRUE(all_answered);
  EXPECT_GT(fails_at, 1) << "nothing has failed";
  server.stop();
  serving.join();
}

TEST(no_memory, for_a_body_loses_no_answer_before_it) {
  fail_each("POST /third" + get + "Content-Length: 40000\r\n\r\n" + std::string(40000, 'b'));
}

TEST(no_memory, for_headers_loses_no_answer_before_them) {
  std::string fields;
  for (int i = 0; i < 60; ++i) {
    fields += "X-Field-" + std::to_string(i) + ": of some length\r\n";
  }
  fail_each("GET /third" + get + fields + "\r\n");
}

TEST(no_memory, for_a_file_loses_no_answer_before_it) {
  const auto path = std::filesystem::temp_directory_path() / ("pirn_no_memory_" + std::to_string(::getpid()));
  for (const std::size_t size : {std::size_t{20'000}, std::size_t{200'000}}) {
    std::ofstream(path) << std::string(size, 'f');
    fail_each("GET /file" + get + "\r\n", path);
  }
  std::filesystem::remove(path);
}

}  // namespace
