// Files that are open for O_DIRECT with the epoll engine, whose requests go by io_submit.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "detail/sandbox.hpp"
#include "pirn/fiber/runtime.hpp"
#include "pirn/fiber/scope.hpp"
#include "pirn/io/file.hpp"

namespace {

using pirn::file;
using pirn::io_error;

constexpr std::size_t block = 4096;
constexpr std::size_t blocks = 300;  ///< of a test's file

struct free_memory {
  void operator()(char* of) const { std::free(of); }
};
/// A block at an address that such files accept.
std::unique_ptr<char[], free_memory> make_block(char filled_with) {
  auto* const made = static_cast<char*>(std::aligned_alloc(block, block));
  std::fill_n(made, block, filled_with);
  return std::unique_ptr<char[], free_memory>(made);
}

/// Whether this process has io_submit's memory.
bool uses_io_submit() {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    if (line.find("[aio]") != std::string::npos) {
      return true;
    }
  }
  return false;
}

class direct_io_files : public testing::Test {
 public:
  void read_one() const {
    epoll(1).run([this] {
      file f = opened();
      const auto got = make_block('?');
      EXPECT_EQ(f.read_at(got.get(), block, block).value(), block);
      EXPECT_EQ(std::count(got.get(), got.get() + block, '\0'), block);
    });
  }
  void write_and_read() const {
    epoll(1).run([this] {
      file f = opened();
      EXPECT_TRUE(f.write_at(make_block('w').get(), block, block));
      const auto got = make_block(0);
      EXPECT_EQ(f.read_at(got.get(), block, block).value(), block);
      EXPECT_EQ(std::count(got.get(), got.get() + block, 'w'), block);
    });
  }

 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const int there = ::open("/tmp", O_RDWR | O_TMPFILE | O_DIRECT | O_CLOEXEC, 0600);
    if (there < 0) {
      GTEST_SKIP() << "/tmp has no files for O_DIRECT";
    }
    ::close(there);
    ::aio_context_t context = 0;
    if (::syscall(SYS_io_setup, 1, &context) != 0) {
      GTEST_SKIP() << "no io_submit here";
    }
    ::syscall(SYS_io_destroy, context);
    char name[] = "/tmp/pirn_direct_XXXXXX";
    const int made = ::mkstemp(name);
    path_ = name;
    // Writes that make a file longer would wait, and so go to the blocking pool.
    const std::string zeros(blocks * block, '\0');
    EXPECT_EQ(::write(made, zeros.data(), zeros.size()), static_cast<ssize_t>(zeros.size()));
    EXPECT_EQ(::fsync(made), 0);
    ::close(made);
  }
  ~direct_io_files() override { ::unlink(path_.c_str()); }

  [[nodiscard]] file opened() const {
    return file::open(path_, {.access = file::access::read_write, .direct = true}).value();
  }
  [[nodiscard]] static pirn::runtime epoll(unsigned workers) {
    return pirn::runtime({.workers = workers, .engine = pirn::engine_kind::epoll});
  }
  /// Ends the process, with 0 if `what` succeeds while calls fail with `error`.
  [[noreturn]] void exit_without(std::initializer_list<long> calls, int error,
                                 void (direct_io_files::*what)() const) const {
    pirn_test::refuse_calls(calls, error);
    (this->*what)();
    std::_Exit(HasFailure() ? 1 : 0);
  }

  std::string path_;
};

TEST_F(direct_io_files, many_requests_at_once_each_have_their_own_bytes) {
  epoll(2).run([this] {
    file f = opened();
    pirn::scope all;
    for (std::size_t i = 0; i < blocks; ++i) {
      all.spawn([&f, i] {
        const std::uint64_t offset = i * block;
        const char mark = static_cast<char>('a' + i % 26);
        ASSERT_TRUE(f.write_at(make_block(mark).get(), block, offset));
        const auto got = make_block(0);
        ASSERT_EQ(f.read_at(got.get(), block, offset).value(), block);
        EXPECT_EQ(std::count(got.get(), got.get() + block, mark), block);
      });
    }
    all.join();
    EXPECT_TRUE(uses_io_submit());
    EXPECT_EQ(f.size().value(), blocks * block);
  });
}

TEST_F(direct_io_files, ends_and_errors_are_those_of_other_files) {
  epoll(1).run([this] {
    file f = opened();
    ASSERT_TRUE(f.write_at(make_block('x').get(), block, 0));
    const auto into = make_block(0);
    EXPECT_EQ(f.read_at(into.get(), block, blocks * block).value(), 0u);
    if (::pread(f.native(), into.get() + 1, block - 1, 1) < 0) {  // some file systems take any address
      EXPECT_EQ(f.read_at(into.get() + 1, block - 1, 1).error(), std::errc::invalid_argument);
      EXPECT_EQ(f.write_at(into.get() + 1, block - 1, 1).error().path, path_);
    }
    file only_to_read = file::open(path_, {.direct = true}).value();
    EXPECT_EQ(only_to_read.write_at(into.get(), block, 0).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(only_to_read.read_at(into.get(), block, 0).value(), block);
    EXPECT_EQ(into[0], 'x');
  });
}

TEST_F(direct_io_files, the_end_of_a_file_may_be_inside_of_a_block) {
  epoll(1).run([this] {
    {
      file whole = file::open(path_, {.access = file::access::read_write}).value();
      ASSERT_TRUE(whole.truncate(block + 1));
    }
    file f = opened();
    const auto into = make_block(0);
    EXPECT_EQ(f.read_at(into.get(), block, block).value(), 1u);
    const auto more = f.read_exactly_at(into.get(), block, block);
    EXPECT_EQ(more.error(), io_error::end_of_stream);
    EXPECT_EQ(more.error().done, 1u);
    file::cursor reader(f, block);
    EXPECT_EQ(reader.read(into.get(), block).value(), 1u);
    EXPECT_EQ(reader.read(into.get(), block).value(), 0u);
  });
}

TEST_F(direct_io_files, a_cursor_writes_by_it_too) {
  epoll(1).run([this] {
    file f = opened();
    file::cursor writer(f);
    const auto from = make_block('c');
    EXPECT_TRUE(writer.write(from.get(), block));
    EXPECT_TRUE(uses_io_submit());
  });
}

TEST_F(direct_io_files, a_write_that_makes_the_file_longer_is_whole) {
  epoll(1).run([this] {
    file f = opened();
    const auto from = make_block('l');
    EXPECT_TRUE(f.write_at(from.get(), block, blocks * block));
    EXPECT_EQ(f.size().value(), (blocks + 1) * block);
    const auto into = make_block(0);
    EXPECT_EQ(f.read_at(into.get(), block, blocks * block).value(), block);
    EXPECT_EQ(into[0], 'l');
  });
}

TEST_F(direct_io_files, other_files_are_not_read_by_it) {
  epoll(1).run([this] {
    file f = file::open(path_, {.access = file::access::read_write}).value();
    EXPECT_TRUE(f.write_at("text", 4, 0));
    char got[4];
    EXPECT_EQ(f.read_at(got, sizeof got, 0).value(), 4u);
    EXPECT_FALSE(uses_io_submit());
  });
}

TEST_F(direct_io_files, a_read_is_no_call_of_the_blocking_pool) {
  if (!pirn_test::can_refuse_calls()) {
    GTEST_SKIP() << "no seccomp filters here";
  }
  EXPECT_EXIT(exit_without({SYS_preadv, SYS_preadv2}, EPERM, &direct_io_files::read_one), testing::ExitedWithCode(0),
              "");
}

TEST_F(direct_io_files, a_container_that_refuses_it_has_the_pool) {
  if (!pirn_test::can_refuse_calls()) {
    GTEST_SKIP() << "no seccomp filters here";
  }
  for (const int error : {ENOSYS, EPERM}) {
    for (const long call : {SYS_io_setup, SYS_io_submit}) {
      EXPECT_EXIT(exit_without({call}, error, &direct_io_files::write_and_read), testing::ExitedWithCode(0), "");
    }
  }
}

}  // namespace
