// buffered_reader and buffered_writer: pieces and their limits, the size of the buffer, errors that lose nothing.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "pirn/fiber/runtime.hpp"
#include "pirn/io/any_stream.hpp"
#include "pirn/io/buffered_reader.hpp"
#include "pirn/io/buffered_writer.hpp"
#include "pirn/io/copy.hpp"
#include "pirn/io/limit_exceeded.hpp"
#include "pirn/io/memory_stream.hpp"

namespace {

using namespace std::chrono_literals;
using pirn::any_stream;
using pirn::buffered_reader;
using pirn::buffered_writer;
using pirn::const_buffer;
using pirn::io_error;
using pirn::limit_exceeded;
using pirn::memory_stream;
using pirn::result;

static_assert(pirn::lending_stream<buffered_reader> && pirn::writable_stream<buffered_writer>);
static_assert(!std::is_copy_constructible_v<buffered_reader> && !std::is_copy_constructible_v<buffered_writer>);
static_assert(std::is_nothrow_move_constructible_v<buffered_reader>);

/// A source that returns one of its pieces in each read, or an error in place of one that begins with '!'.
struct pieces {
  std::deque<std::string> left;
  std::vector<std::size_t> asked = {};

  result<std::size_t> read(void* into, std::size_t size, pirn::time_limit) {
    asked.push_back(size);
    if (left.empty()) {
      return 0;
    }
    if (left.front() == "!") {
      left.pop_front();
      return pirn::fail(io_error::timed_out);
    }
    std::string& next = left.front();
    const std::size_t count = std::min(size, next.size());
    std::memcpy(into, next.data(), count);
    next.erase(0, count);
    if (next.empty()) {
      left.pop_front();
    }
    return count;
  }
};
static_assert(pirn::readable_stream<pieces> && !pirn::stream<pieces>);

/// A target that takes as many bytes in each call as `takes` says, and fails where that is 0.
struct sink {
  std::deque<std::size_t> takes = {};
  std::string got = {};
  std::vector<std::size_t> parts = {};

  result<std::size_t> write_some(std::span<const const_buffer> from, pirn::time_limit) {
    parts.push_back(from.size());
    std::size_t most = std::numeric_limits<std::size_t>::max();
    if (!takes.empty()) {
      most = takes.front();
      takes.pop_front();
      if (most == 0) {
        return pirn::fail(io_error::timed_out);
      }
    }
    const std::size_t before = got.size();
    for (const const_buffer& part : from) {
      const std::size_t count = std::min(part.size, most);
      got.append(static_cast<const char*>(part.data), count);
      most -= count;
    }
    return got.size() - before;
  }
};

// ---- reading -------------------------------------------------------------------------------------------------------

TEST(buffered_reader, reads_lines_however_they_arrive) {
  pieces from{{"on", "e\ntwo\r", "\n\nfo\rur\nrest"}};
  buffered_reader reader(from);
  EXPECT_EQ(reader.read_line(10), "one");
  EXPECT_EQ(reader.read_line(10), "two");
  EXPECT_EQ(reader.read_line(10), "");
  EXPECT_EQ(reader.read_line(10), "fo\rur");
  EXPECT_EQ(reader.buffered(), 4u);
  EXPECT_EQ(reader.read_line(10).error(), io_error::end_of_stream);
  EXPECT_EQ(reader.buffered(), 4u);
  EXPECT_EQ(reader.peek(reader.buffered()), "rest");
  ASSERT_TRUE(reader.skip(4));
  EXPECT_EQ(reader.read_line(10).error(), io_error::end_of_stream);
  EXPECT_EQ(reader.buffered(), 0u);
}

TEST(buffered_reader, a_line_may_have_as_many_bytes_as_its_limit) {
  for (const char* const end : {"\n", "\r\n"}) {
    for (const std::size_t length : {0, 1, 15, 16, 17, 31, 32, 33, 100}) {
      const std::string line(length, 'x');
      pieces from{{line + end + "next"}};
      buffered_reader reader(from, 16);
      EXPECT_EQ(reader.read_line(length), line);
      EXPECT_EQ(reader.peek(4), "next");
      pieces single;
      for (const char each : line + end) {
        single.left.emplace_back(1, each);
      }
      buffered_reader slow(single, 16);
      EXPECT_EQ(slow.read_line(length), line);
    }
  }
}

TEST(buffered_reader, a_longer_line_fails_at_once) {
  pieces from{{"12345\n"}};
  buffered_reader known(from);
  EXPECT_EQ(known.read_line(4).error(), limit_exceeded(4));
  EXPECT_EQ(known.read_line(5), "12345");  // it has stayed in the buffer

  // The stream has no more for now, and a read would wait.
  auto [a, b] = memory_stream::pair();
  buffered_reader reader(b);
  ASSERT_TRUE(a.write("12345"));
  EXPECT_EQ(reader.read_line(4, 5ms).error(), limit_exceeded(4));
  EXPECT_EQ(reader.read_until(';', 4, 5ms).error(), limit_exceeded(4));
  EXPECT_EQ(reader.read_line(5, 5ms).error(), io_error::timed_out);
  ASSERT_TRUE(a.write("\r"));  // may be part of the line's end
  EXPECT_EQ(reader.read_line(5, 5ms).error(), io_error::timed_out);
  EXPECT_EQ(reader.read_line(4, 5ms).error(), limit_exceeded(4));
  ASSERT_TRUE(a.write("x"));
  EXPECT_EQ(reader.read_line(6, 5ms).error(), limit_exceeded(6));
  EXPECT_EQ(reader.read_line(0, 5ms).error(), limit_exceeded(0));
}

TEST(buffered_reader, reads_up_to_a_delimiter) {
  pieces from{{"a;b", "c;;\n"}};
  buffered_reader reader(from, 16);
  EXPECT_EQ(reader.read_until(';', 1), "a");
  EXPECT_EQ(reader.read_until(';', 1).error(), limit_exceeded(1));
  EXPECT_EQ(reader.read_until(';', 2), "bc");
  EXPECT_EQ(reader.read_until(';', 0), "");
  EXPECT_EQ(reader.read_until(';', std::numeric_limits<std::size_t>::max()).error(), io_error::end_of_stream);
  EXPECT_EQ(reader.read_line(0), "");
}

TEST(buffered_reader, its_buffer_has_room_for_the_limit_and_shrinks_back) {
  pieces from{{std::string(5000, 'a'), "\nshort\nlast\n"}};
  buffered_reader reader(from, 64);
  EXPECT_EQ(reader.capacity(), 0u);
  EXPECT_EQ(reader.read_line(1000).error(), limit_exceeded(1000));
  EXPECT_LE(reader.capacity(), 1002u);
  EXPECT_EQ(reader.read_line(4999).error(), limit_exceeded(4999));
  EXPECT_LE(reader.capacity(), 5001u);
  EXPECT_EQ(reader.read_line(5000)->size(), 5000u);
  EXPECT_LE(reader.capacity(), 5002u);
  EXPECT_EQ(reader.read_line(5000), "short");
  EXPECT_EQ(reader.capacity(), 64u);
  EXPECT_EQ(reader.read_line(5000), "last");
  EXPECT_EQ(reader.read_line(5000).error(), io_error::end_of_stream);
  EXPECT_EQ(reader.capacity(), 64u);
}

TEST(buffered_reader, peeks_and_skips) {
  pieces from{{"abc", "def", std::string(100, 'x') + "yz"}};
  buffered_reader reader(from, 16);
  EXPECT_EQ(reader.peek(0), "");
  EXPECT_EQ(reader.peek(4), "abcd");
  EXPECT_EQ(reader.peek(17).error(), limit_exceeded(16));
  EXPECT_EQ(reader.peek(16), "abcdefxxxxxxxxxx");
  ASSERT_TRUE(reader.skip(1));
  EXPECT_EQ(reader.peek(16), "bcdefxxxxxxxxxxx");
  ASSERT_TRUE(reader.skip(5 + 100));
  EXPECT_EQ(reader.peek(2), "yz");
  EXPECT_EQ(reader.peek(3).error(), io_error::end_of_stream);
  EXPECT_EQ(reader.peek(2), "yz");
  pieces unfinished{{std::string(50, 'x')}};
  buffered_reader long_line(unfinished, 16);
  EXPECT_EQ(long_line.read_line(100).error(), io_error::end_of_stream);
  EXPECT_EQ(long_line.peek(51).error(), limit_exceeded(16));
  EXPECT_EQ(long_line.peek(long_line.buffered()), std::string(50, 'x'));
  EXPECT_EQ(reader.skip(3).error(), io_error::end_of_stream);
  ASSERT_TRUE(reader.skip(0));
}

TEST(buffered_reader, a_large_read_passes_by_the_buffer) {
  pieces from{{std::string(300, 'x')}};
  buffered_reader reader(from, 64);
  char into[200];
  EXPECT_EQ(reader.read(into, 0), 0u);
  EXPECT_TRUE(from.asked.empty());
  EXPECT_EQ(reader.read(into, 10), 10u);
  EXPECT_EQ(reader.read(into, 200), 54u);  // the rest of the buffer
  EXPECT_EQ(reader.read(into, 64), 64u);
  EXPECT_TRUE(reader.read_exactly(into, 172));
  EXPECT_EQ(reader.read(into, 10), 0u);
  EXPECT_EQ(reader.read_exactly(into, 1).error(), io_error::end_of_stream);
  EXPECT_EQ(from.asked, (std::vector<std::size_t>{64, 64, 172, 64, 64}));
}

TEST(buffered_reader, an_error_loses_no_byte) {
  pieces from{{"ab", "!", "c\n", "de", "!", "fgh"}};
  buffered_reader reader(from, 16);
  EXPECT_EQ(reader.read_line(10).error(), io_error::timed_out);
  EXPECT_EQ(reader.read_line(10), "abc");
  EXPECT_EQ(reader.peek(4).error(), io_error::timed_out);
  EXPECT_EQ(reader.peek(4), "defg");
}

TEST(buffered_reader, lends_its_bytes) {
  pieces from{{"!", "abc", "d\n"}};
  buffered_reader reader(from, 16);
  EXPECT_EQ(reader.lend().error(), io_error::timed_out);
  {
    auto view = reader.lend();
    EXPECT_EQ(view->text(), "abc");
    view->consume(1);
    char byte = 0;
    const std::error_code busy = make_error_code(std::errc::device_or_resource_busy);
    EXPECT_EQ(reader.read(&byte, 1).error(), busy);
    EXPECT_EQ(reader.read_line(10).error(), busy);
    EXPECT_EQ(reader.read_until(';', 10).error(), busy);
    EXPECT_EQ(reader.peek(1).error(), busy);
    EXPECT_EQ(reader.skip(1).error(), busy);
    EXPECT_EQ(reader.lend().error(), busy);
    EXPECT_EQ(reader.buffered(), 3u);
  }
  EXPECT_EQ(reader.lend()->text(), "bc");
  EXPECT_EQ(reader.read_line(10), "bcd");
  EXPECT_TRUE(reader.lend()->empty());
}

TEST(buffered_reader, owns_a_stream_or_refers_to_one) {
  auto [a, b] = memory_stream::pair();
  ASSERT_TRUE(a.write("1\n2\n3\n4\n"));
  any_stream any(std::move(b));
  {
    buffered_reader reader(any, 16);  // an lvalue of any_stream, too, is referred to
    EXPECT_EQ(reader.read_line(9), "1");
    buffered_reader moved(std::move(reader));
    EXPECT_EQ(moved.read_line(9), "2");
    reader = std::move(moved);
    EXPECT_EQ(reader.read_line(9), "3");
  }
  ASSERT_TRUE(a.write("5\n"));
  buffered_reader owner(std::move(any));
  EXPECT_EQ(owner.read_line(9), "5");
  buffered_reader other(pieces{{"6\n"}});
  EXPECT_EQ(other.read_line(9), "6");
  const struct {
    result<std::size_t> read(void*, std::size_t, pirn::time_limit) const { return 0; }
  } ended;
  buffered_reader of_const(ended);
  EXPECT_EQ(of_const.read_line(9).error(), io_error::end_of_stream);
  owner = buffered_reader();
  EXPECT_EQ(a.write("x").error(), std::errc::broken_pipe);  // it was the owner
}

TEST(buffered_reader, one_that_was_moved_from_is_empty) {
  pieces from{{"abc\n"}};
  buffered_reader full(from);
  ASSERT_TRUE(full.peek(1));
  buffered_reader moved(std::move(full));
  for (buffered_reader empty; buffered_reader* each : {&full, &empty}) {  // NOLINT(bugprone-use-after-move)
    char byte = 0;
    EXPECT_EQ(each->buffered(), 0u);
    EXPECT_EQ(each->capacity(), 0u);
    EXPECT_EQ(each->read(&byte, 1).error(), io_error::closed);
    EXPECT_EQ(each->read(&byte, 0).error(), io_error::closed);
    EXPECT_EQ(each->read_exactly(&byte, 1).error(), io_error::closed);
    EXPECT_EQ(each->read_line(1).error(), io_error::closed);
    EXPECT_EQ(each->read_until(';', 1).error(), io_error::closed);
    EXPECT_EQ(each->peek(0).error(), io_error::closed);
    EXPECT_EQ(each->skip(0).error(), io_error::closed);
    EXPECT_EQ(each->lend().error(), io_error::closed);
  }
  EXPECT_EQ(moved.read_line(9), "abc");
}

// ---- writing -------------------------------------------------------------------------------------------------------

TEST(buffered_writer, small_pieces_become_one) {
  sink to;
  buffered_writer writer(to, 16);
  ASSERT_TRUE(writer.write("one "));
  ASSERT_TRUE(writer.write("two ", 4));
  const const_buffer parts[] = {{"three", 5}, {nullptr, 0}, {"!", 1}};
  ASSERT_TRUE(writer.write(parts));
  EXPECT_EQ(writer.buffered(), 14u);
  EXPECT_EQ(to.got, "");
  ASSERT_TRUE(writer.flush());
  ASSERT_TRUE(writer.flush());
  EXPECT_EQ(to.got, "one two three!");
  EXPECT_EQ(to.parts, std::vector<std::size_t>{1});
  EXPECT_EQ(writer.buffered(), 0u);
}

TEST(buffered_writer, what_does_not_fit_goes_along_without_a_copy) {
  sink to;
  buffered_writer writer(to, 16);
  ASSERT_TRUE(writer.write("0123456789"));
  ASSERT_TRUE(writer.write("abcdef"));  // it is just full
  EXPECT_EQ(writer.buffered(), 16u);
  ASSERT_TRUE(writer.write("g"));
  EXPECT_EQ(writer.buffered(), 0u);
  EXPECT_EQ(to.parts, std::vector<std::size_t>{2});
  const std::string much(1000, 'x');
  const std::vector<const_buffer> parts(40, {much.data(), much.size()});
  ASSERT_TRUE(writer.write(parts));
  EXPECT_EQ(to.parts, (std::vector<std::size_t>{2, 16, 16, 8}));
  EXPECT_EQ(to.got.size(), 17u + 40000);
}

TEST(buffered_writer, an_error_neither_loses_nor_repeats_a_byte) {
  sink to{{3, 0, 9, 4, 0, 1}};
  buffered_writer writer(to, 16);
  ASSERT_TRUE(writer.write("0123456789"));
  EXPECT_EQ(writer.flush().error(), io_error::timed_out);
  EXPECT_EQ(to.got, "012");
  EXPECT_EQ(writer.buffered(), 7u);
  const std::string more = "abcdefghijklmnopqrstuvwxyz";
  EXPECT_EQ(writer.write_some(more.data(), more.size()), 2u);
  EXPECT_EQ(to.got, "0123456789ab");
  const pirn::copy_result some = write_all(writer, std::string_view(more).substr(2));
  EXPECT_FALSE(some);
  EXPECT_EQ(some.error, io_error::timed_out);
  EXPECT_EQ(some.written, 4u);
  EXPECT_EQ(some.read, 4u);
  EXPECT_EQ(writer.buffered(), 0u);
  ASSERT_TRUE(writer.write(std::string_view(more).substr(6)));  // 1 byte at first, then all
  EXPECT_EQ(writer.buffered(), 0u);
  EXPECT_EQ(to.got, "0123456789" + more);
}

TEST(buffered_writer, owns_a_stream_or_refers_to_one) {
  auto [a, b] = memory_stream::pair();
  char text[9];
  any_stream any(std::move(a));
  {
    buffered_writer writer(any);
    ASSERT_TRUE(writer.write("dropped"));
    buffered_writer moved(std::move(writer));
    ASSERT_TRUE(moved.flush());
    ASSERT_TRUE(moved.write("lost"));
  }
  EXPECT_EQ(b.read(text, sizeof text), 7u);
  {
    buffered_writer owner(std::move(any));
    ASSERT_TRUE(owner.write("x"));
    ASSERT_TRUE(owner.flush());
  }
  EXPECT_EQ(b.read(text, sizeof text), 1u);
  EXPECT_EQ(b.read(text, sizeof text), 0u);
}

TEST(buffered_writer, one_that_was_moved_from_is_empty) {
  sink to;
  buffered_writer full(to);
  ASSERT_TRUE(full.write("abc"));
  buffered_writer moved(std::move(full));
  for (buffered_writer empty; buffered_writer* each : {&full, &empty}) {  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(each->buffered(), 0u);
    EXPECT_EQ(each->write("x").error(), io_error::closed);
    EXPECT_EQ(each->flush().error(), io_error::closed);
    EXPECT_EQ(each->write_some("", 0), 0u);
    EXPECT_TRUE(each->write(""));
  }
  ASSERT_TRUE(moved.flush());
  EXPECT_EQ(to.got, "abc");
}

#if !defined(PIRN_ASAN) && !defined(PIRN_TSAN)  // under which a request for so much memory aborts
TEST(buffered_streams, a_lack_of_memory_is_an_error) {
  pieces from{{"line\n"}};
  buffered_reader reader(from, std::numeric_limits<std::size_t>::max() / 4);
  EXPECT_EQ(reader.read_line(4).error(), std::errc::not_enough_memory);
  sink to;
  buffered_writer writer(to, std::numeric_limits<std::size_t>::max() / 4);
  EXPECT_EQ(writer.write("x").error(), std::errc::not_enough_memory);
  EXPECT_THROW(static_cast<void>(memory_stream::pair(std::numeric_limits<std::size_t>::max() / 4)), std::bad_alloc);
}
#endif

TEST(buffered_streams, pass_on_deadlines_and_stops) {
  pirn::runtime runtime({.workers = 1});
  runtime.run([] {
    auto [a, b] = memory_stream::pair(1);
    buffered_writer writer(a, 16);
    buffered_reader reader(b, 16);
    EXPECT_EQ(reader.read_line(9, 1ms).error(), io_error::timed_out);
    ASSERT_TRUE(writer.write("ab"));
    EXPECT_EQ(writer.flush(1ms).error(), io_error::timed_out);
    EXPECT_EQ(writer.buffered(), 1u);
    pirn::fiber stopped = pirn::spawn([&] {
      EXPECT_EQ(writer.flush().error(), io_error::stopped);
      EXPECT_TRUE(writer.write("c"));  // need not wait
      EXPECT_EQ(reader.peek(1).error(), io_error::stopped);
    });
    stopped.request_stop();
    stopped.join();
    pirn::fiber reads = pirn::spawn([&] { EXPECT_EQ(reader.peek(3), "abc"); });
    EXPECT_TRUE(writer.flush());
    reads.join();
  });
}

}  // namespace
