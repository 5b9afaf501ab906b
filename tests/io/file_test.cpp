// Files: what is written is read, and each error names the path and what was done.
#include "pirn/io/file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pirn/fiber/runtime.hpp"
#include "pirn/io/any_stream.hpp"
#include "pirn/io/buffered_reader.hpp"
#include "pirn/io/copy.hpp"
#include "stack/support.hpp"

namespace {

using namespace std::chrono_literals;
using pirn::file;
using pirn::io_error;

/// A folder that is removed with all that is in it.
struct folder {
  folder() {
    char text[] = "/tmp/pirn_file_XXXXXX";
    path = ::mkdtemp(text);
  }
  ~folder() { std::filesystem::remove_all(path); }
  std::string path;
};

static_assert(pirn::stream<file::cursor>);

constexpr file::options to_write = {.access = file::access::read_write, .create = file::create::if_missing};

/// Runs a body as a fiber and as a plain thread.
template <class Body>
void both_ways(Body body) {
  pirn::runtime({.workers = 1}).run(body);
  body();
}

TEST(file, what_is_written_is_read) {
  both_ways([] {
    const folder in;
    file f = file::open(in.path + "/a", to_write).value();
    EXPECT_TRUE(f.write_at("hello, world", 12, 3));
    EXPECT_EQ(f.size().value(), 15u);
    char text[16] = {};
    EXPECT_EQ(f.read_at(text, sizeof text, 3).value(), 12u);
    EXPECT_STREQ(text, "hello, world");
    EXPECT_EQ(f.read_at(text, sizeof text, 15).value(), 0u);
    EXPECT_TRUE(f.sync());
    EXPECT_TRUE(f.sync(pirn::sync_scope::data));
    EXPECT_TRUE(f.truncate(8));
    EXPECT_EQ(f.size().value(), 8u);
    EXPECT_TRUE(file::open(in.path).value().sync());
    EXPECT_EQ(::fcntl(f.native(), F_GETFD), FD_CLOEXEC);
    f.close();
    EXPECT_EQ(f.size().error(), io_error::closed);
  });
}

TEST(file, many_parts_are_written_whole) {
  pirn::runtime({.workers = 1}).run([] {
    file f = file::temporary().value();
    std::vector<std::string> words;
    std::vector<::iovec> parts;
    std::string whole;
    for (int i = 0; i < 100; ++i) {
      words.push_back(std::string(static_cast<std::size_t>(i % 7), static_cast<char>('a' + i % 26)));
      whole += words.back();
    }
    for (std::string& word : words) {
      parts.push_back({word.data(), word.size()});
    }
    EXPECT_TRUE(f.write_at(parts, 0));
    std::string got(whole.size(), '.');
    EXPECT_TRUE(f.read_exactly_at(got.data(), got.size(), 0));
    EXPECT_EQ(got, whole);
    char left[2];
    char right[3];
    const ::iovec into[] = {{left, 2}, {right, 3}};
    EXPECT_EQ(f.read_at(into, 1).value(), 5u);
    EXPECT_EQ(std::string(left, 2) + std::string(right, 3), whole.substr(1, 5));
  });
}

TEST(cursor, reads_to_the_end_and_then_what_was_added) {
  both_ways([] {
    const folder in;
    file f = file::open(in.path + "/log",
                        {.access = file::access::read_write, .create = file::create::always_new, .append = true})
                 .value();
    EXPECT_TRUE(f.append("one"));
    pirn::file::cursor reader(f);
    char text[8];
    EXPECT_EQ(reader.read(text, sizeof text), 3u);
    EXPECT_EQ(reader.read(text, sizeof text), 0u);
    EXPECT_TRUE(f.append("two"));
    EXPECT_EQ(reader.read(text, sizeof text), 3u);
    EXPECT_EQ(std::string(text, 3), "two");
    EXPECT_EQ(reader.offset(), 6u);
    EXPECT_TRUE(reader.write("!"));
    EXPECT_EQ(reader.offset(), 6u) << "what is appended is not read yet";
    EXPECT_EQ(reader.read(text, sizeof text), 1u);
    EXPECT_EQ(file::open(in.path + "/log").value().append("x").error(), std::errc::invalid_argument);
  });
}

TEST(cursor, is_a_stream) {
  both_ways([] {
    const folder in;
    file f = file::open(in.path + "/from", to_write).value();
    file g = file::open(in.path + "/to", to_write).value();
    file::cursor out(f);
    const pirn::const_buffer parts[] = {{"one\n", 4}, {"", 0}, {"two\n", 4}};
    EXPECT_TRUE(out.write(parts));
    EXPECT_EQ(out.offset(), 8u);
    file::cursor lines(f, 4);
    pirn::buffered_reader reader(lines);
    EXPECT_EQ(reader.read_line(10), "two");
    file::cursor from(f);
    pirn::any_stream to{file::cursor(g, 1)};
    EXPECT_TRUE(pirn::copy(from, to));
    EXPECT_TRUE(to.shutdown(pirn::shutdown_half::write));
    char text[9];
    EXPECT_TRUE(g.read_exactly_at(text, 9, 0));
    EXPECT_EQ(std::string(text, 9), std::string("\0one\ntwo\n", 9));
    to.close();
    EXPECT_FALSE(g.is_open());
    EXPECT_EQ(to.read(text, 1).error(), io_error::closed);
    file only_read = file::open(in.path + "/from").value();
    EXPECT_EQ(file::cursor(only_read).write("x").error(), std::errc::bad_file_descriptor);
  });
}

TEST(mapping, has_the_bytes_of_the_file) {
  both_ways([] {
    file f = file::temporary().value();
    const std::string much(10'000, 'm');
    EXPECT_TRUE(f.write_at(much.data(), much.size(), 0));
    EXPECT_TRUE(f.write_at("abc", 3, 5000));
    const auto text_of = [](std::span<const std::byte> bytes) {
      return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    file::mapping shown = f.map(4999, 5).value();
    EXPECT_EQ(text_of(shown.bytes()), "mabcm");
    EXPECT_TRUE(shown.writable().empty());
    file::mapping copy = f.map_private(0, much.size()).value();
    copy.writable()[5001] = std::byte{'!'};
    EXPECT_EQ(text_of(copy.bytes()).substr(5000, 3), "a!c");
    f.close();
    EXPECT_EQ(text_of(shown.bytes()), "mabcm") << "the file stays as it is";
    shown = std::move(copy);
    EXPECT_EQ(shown.bytes().size(), much.size());
    EXPECT_EQ(text_of(shown.bytes()).substr(5000, 3), "a!c");
  });
}

TEST(mapping, that_is_impossible_is_an_error_with_the_path) {
  both_ways([] {
    const folder in;
    file f = file::open(in.path + "/a", to_write).value();
    EXPECT_TRUE(f.write_at("abc", 3, 0));
    const auto beyond = f.map(1, 3);
    ASSERT_FALSE(beyond);
    EXPECT_EQ(beyond.error().message(), "map " + in.path + "/a: " + make_error_code(io_error::end_of_stream).message());
    EXPECT_EQ(f.map(~std::uint64_t{0}, 2).error(), io_error::end_of_stream);
    EXPECT_EQ(f.map(0, 0).error(), std::errc::invalid_argument);
    EXPECT_EQ(file::open("/dev/full").value().map(0, 1).error(), io_error::end_of_stream);
    EXPECT_EQ(file::open(in.path + "/a", {.access = file::access::write}).value().map(0, 1).error(),
              std::errc::permission_denied);
    EXPECT_EQ(f.map(0, 1, std::chrono::steady_clock::now()).error().message(),
              "map " + in.path + "/a: " + make_error_code(io_error::timed_out).message());
    f.close();
    EXPECT_EQ(f.map(0, 1).error(), io_error::closed);
  });
}

TEST(file, errors_name_the_path_and_what_was_done) {
  both_ways([] {
    const folder in;
    const auto missing = file::open(in.path + "/none");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error(), std::errc::no_such_file_or_directory);
    EXPECT_EQ(missing.error().message(), "open " + in.path + "/none: No such file or directory");
    EXPECT_EQ(file::open(std::string_view("a\0b", 3)).error(), std::errc::invalid_argument);
    file directory = file::open(in.path).value();
    char byte;
    EXPECT_EQ(directory.read_at(&byte, 1, 0).error(), std::errc::is_a_directory);
    std::filesystem::remove_all(in.path);
    EXPECT_EQ(file::open(in.path + "/new", to_write).error(), std::errc::no_such_file_or_directory);
    file full = file::open("/dev/full", {.access = file::access::write}).value();
    EXPECT_EQ(full.write_at("x", 1, 0).error().message(), "write /dev/full: No space left on device");
    EXPECT_EQ(file::open(in.path, to_write, std::chrono::steady_clock::now()).error(), io_error::timed_out);
  });
}

TEST(file, an_interrupted_write_says_how_much_was_written) {
  pirn::runtime({.workers = 1}).run([] {
    const folder in;
    file f = file::open(in.path + "/a", to_write).value();
    ::rlimit before;
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const auto handler = ::signal(SIGXFSZ, SIG_IGN);
    ::rlimit small = before;
    small.rlim_cur = 1000;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const std::string much(1500, 'x');
    const auto written = f.write_at(much.data(), much.size(), 0);
    ::setrlimit(RLIMIT_FSIZE, &before);
    ::signal(SIGXFSZ, handler);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error(), std::errc::file_too_large);
    EXPECT_EQ(written.error().done, 1000u);
    EXPECT_EQ(written.error().message(), "write " + in.path + "/a: File too large (1000 bytes were done)");
  });
}

TEST(file, that_shrinks_ends_the_read) {
  both_ways([] {
    file f = file::temporary().value();
    EXPECT_TRUE(f.write_at("abcdef", 6, 0));
    EXPECT_TRUE(f.truncate(4));
    char text[6];
    const auto got = f.read_exactly_at(text, sizeof text, 0);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error(), io_error::end_of_stream);
    EXPECT_EQ(got.error().done, 4u);
  });
}

TEST(file, a_named_pipe_does_not_hold_up_its_opening) {
  pirn::runtime({.workers = 1}).run([] {
    const folder in;
    ASSERT_EQ(::mkfifo((in.path + "/fifo").c_str(), 0600), 0);
    EXPECT_TRUE(file::open(in.path + "/fifo"));
    EXPECT_EQ(file::open(in.path + "/fifo", {.access = file::access::write}).error(),
              std::errc::no_such_device_or_address);
  });
}

TEST(file, a_rotated_one_is_another) {
  pirn::runtime({.workers = 1}).run([] {
    const folder in;
    const std::string path = in.path + "/log";
    const file f = file::open(path, to_write).value();
    EXPECT_TRUE(f.is_same(file::open(path).value()));
    std::filesystem::rename(path, path + ".1");
    EXPECT_FALSE(f.is_same(file::open(path, to_write).value()));
    EXPECT_TRUE(f.is_same(file::open(path + ".1").value()));
    EXPECT_FALSE(f.is_same(file()));
  });
}

TEST(file, a_stop_is_noticed) {
  pirn::runtime({.workers = 1}).run([] {
    file f = file::temporary().value();
    pirn::fiber other = pirn::spawn([&] {
      static_cast<void>(pirn::this_fiber::sleep_for(10s));
      EXPECT_EQ(f.write_at("x", 1, 0).error(), io_error::stopped);
      EXPECT_EQ(f.sync().error(), io_error::stopped);
    });
    pirn::this_fiber::yield();
    other.request_stop();
    other.join();
    EXPECT_EQ(f.size().value(), 0u);
  });
}

bool is_closed(int native) { return ::fcntl(native, F_GETFD) < 0; }

/// Calls `ends`, which ends the use of a file of that number. Returns whether another fiber of the worker ran
/// meanwhile.
bool lets_others_run(int native, const std::function<void()>& ends) {
  bool other_has_run = false;
  pirn::fiber other = pirn::spawn([&] { other_has_run = true; });
  ends();
  const bool found = other_has_run;
  EXPECT_TRUE(is_closed(native));
  other.join();
  return found;
}

TEST(file, a_close_that_may_take_long_stops_no_worker) {
  pirn::runtime({.workers = 1}).run([] {
    const folder in;
    std::optional<file> f = file::temporary(in.path).value();
    EXPECT_TRUE(lets_others_run(f->native(), [&] { f->close(); }));
    EXPECT_FALSE(lets_others_run(-1, [&] { f->close(); })) << "it is closed already";
    f = file::temporary(in.path).value();
    EXPECT_TRUE(lets_others_run(f->native(), [&] { f.reset(); }));
    f = file::temporary(in.path).value();
    EXPECT_TRUE(lets_others_run(f->native(), [&] { *f = file(); }));
    const std::string path = in.path + "/a";
    f = file::open(path, to_write).value();
    EXPECT_TRUE(lets_others_run(f->native(), [&] { f->close(); })) << "it may have to be written";
    f = file::open(path).value();
    EXPECT_FALSE(lets_others_run(f->native(), [&] { f->close(); })) << "a pool costs more than this close";
    f = file::open(path).value();
    std::filesystem::remove(path);
    EXPECT_TRUE(lets_others_run(f->native(), [&] { f->close(); })) << "its blocks are given back";
  });
}

TEST(file, is_closed_by_an_exception_and_after_a_stop) {
  pirn::runtime({.workers = 1}).run([] {
    int native = -1;
    const auto throws = [&] {
      const file f = file::temporary().value();
      native = f.native();
      throw std::runtime_error("thrown");
    };
    EXPECT_THROW(throws(), std::runtime_error);
    EXPECT_TRUE(is_closed(native));
    native = -1;
    pirn::fiber stopped = pirn::spawn([&] {
      const file f = file::temporary().value();
      native = f.native();
      EXPECT_FALSE(pirn::this_fiber::sleep_for(10s));
    });
    while (native < 0) {
      EXPECT_TRUE(pirn::this_fiber::sleep_for(1ms));
    }
    stopped.request_stop();
    stopped.join();
    EXPECT_TRUE(is_closed(native));
  });
}

TEST(file, is_closed_where_no_thread_is_to_be_had) {
  file f = file::temporary().value();
  file other = file::temporary().value();
  const int natives[] = {f.native(), other.native()};
  pirn::runtime({.workers = 1, .max_blocking_threads = 0}).run([&] { f.close(); });
  EXPECT_TRUE(is_closed(natives[0]));
#if !defined(PIRN_TSAN)  // it ends a child of a process with threads itself
  pirn::runtime({.workers = 1}).run([&] {
    const auto child = stack_test::in_child([&] {
      ::alarm(20);
      other.close();
      return is_closed(natives[1]) ? 0 : 1;
    });
    EXPECT_TRUE(child.exited_with(0)) << child.status << child.error_output;
  });
#endif
  EXPECT_FALSE(is_closed(natives[1]));
}

}  // namespace
