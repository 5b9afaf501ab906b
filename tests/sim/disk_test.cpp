// The disk of an exploration: random programs do there what they do on Linux, and a crash keeps what was synced.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <pirn/io/directory.hpp>
#include <pirn/io/file.hpp>
#include <pirn/sim/disk.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "detail/system.hpp"
#include "sim/fibers.hpp"

using namespace pirn;
using pirn_test::expect_passes;

namespace {

/// The system calls of one of the two.
struct system_calls {
  int (*openat)(int folder, const char* path, int flags, ::mode_t mode);
  decltype(&::close) close;
  decltype(&::readv) readv;
  decltype(&::writev) writev;
  decltype(&::preadv) preadv;
  decltype(&::pwritev) pwritev;
  decltype(&::fsync) fsync;
  decltype(&::ftruncate) ftruncate;
  decltype(&::fstat) fstat;
  decltype(&::getdents64) getdents64;
  decltype(&::mkdir) mkdir;
  decltype(&::rename) rename;
  decltype(&::remove) remove;
};
int open_of_linux(int folder, const char* path, int flags, ::mode_t mode) noexcept {
  return ::openat(folder, path, flags, mode);
}
#define PIRN_CALLS(of)                                                                                            \
  of::close, of::readv, of::writev, of::preadv, of::pwritev, of::fsync, of::ftruncate, of::fstat, of::getdents64, \
      of::mkdir, of::rename, of::remove
const system_calls of_linux{open_of_linux, PIRN_CALLS()};
const system_calls of_exploration{platform::system::openat, PIRN_CALLS(platform::system)};
#undef PIRN_CALLS

/// A program of files and directories below a root, and the result of each of its calls.
class random_program {
 public:
  random_program(const system_calls& by, std::string root, std::uint64_t seed)
      : by_(by), root_(std::move(root)), numbers_(seed) {}

  std::vector<std::string> run(int calls) {
    for (int i = 0; i < calls; ++i) {
      if (files_.empty() || next(4) == 0) {
        open();
      } else if (next(3) == 0) {
        call_with_paths();
      } else {
        call(next(files_.size()));
      }
    }
    for (const int each : files_) {
      note("closes", by_.close(each));
    }
    list("");
    return std::move(log_);
  }

 private:
  std::size_t next(std::size_t below) { return numbers_.next() / 16 % below; }
  void note(const std::string& what, std::int64_t result) {
    log_.push_back(what + ": " + (result < 0 ? strerrorname_np(errno) : std::to_string(result)));
  }
  std::string any_name() {
    const char* const names[] = {"/a", "/b", "/d", "/d/a", "/d/e", "/d/e/a", "/a/", "/d/", "/./d//a", "/none/a"};
    return names[next(std::size(names))];
  }

  void open() {
    const std::string name = next(20) == 0 ? "" : any_name();
    const int access[] = {O_RDONLY, O_WRONLY, O_RDWR, O_RDWR};
    int flags = access[next(4)];
    if (next(12) == 0) {
      flags |= O_TMPFILE;
    } else if (next(8) == 0) {
      flags |= O_DIRECTORY;
    } else {
      flags |= (next(2) == 0 ? O_CREAT : 0) | (next(5) == 0 ? O_EXCL : 0);
      flags &= (flags & O_CREAT) != 0 ? ~0 : ~O_EXCL;  // alone it means nothing
    }
    flags |= (next(6) == 0 && (flags & O_DIRECTORY) == 0 ? O_TRUNC : 0) | (next(3) == 0 ? O_APPEND : 0);
    const int made = by_.openat(AT_FDCWD, (root_ + name).c_str(), flags, 0644);
    note("open " + name + " " + std::to_string(flags), made < 0 ? -1 : 1);
    if (made >= 0) {
      files_.push_back(made);
    }
    if (files_.size() > 4) {
      note("closes", by_.close(files_.front()));
      files_.erase(files_.begin());
    }
  }

  void call_with_paths() {
    const std::string name = any_name();
    switch (next(4)) {
      case 0:
        note("mkdir " + name, by_.mkdir((root_ + name).c_str(), 0755));
        break;
      case 1: {
        const std::string to = any_name();
        note("rename " + name + " " + to, by_.rename((root_ + name).c_str(), (root_ + to).c_str()));
        break;
      }
      case 2:
        note("remove " + name, by_.remove((root_ + name).c_str()));
        break;
      default:
        list(name);
    }
  }

  /// Lists a directory by small pieces.
  void list(const std::string& name) {
    const int folder = by_.openat(AT_FDCWD, (root_ + name).c_str(), O_RDONLY | O_DIRECTORY, 0);
    note("list " + name, folder < 0 ? -1 : 0);
    std::set<std::string> found;
    for (;;) {
      alignas(::dirent64) char buffer[80];
      const ::ssize_t got = folder < 0 ? 0 : by_.getdents64(folder, buffer, sizeof buffer);
      if (got <= 0) {
        break;
      }
      for (::ssize_t at = 0; at < got;) {
        const auto& entry = *reinterpret_cast<const ::dirent64*>(buffer + at);
        found.insert(std::string(entry.d_name) + (entry.d_type == DT_DIR ? "/" : ""));
        at += entry.d_reclen;
      }
    }
    for (const std::string& each : found) {
      log_.back() += " " + each;
    }
    if (folder >= 0) {
      by_.close(folder);
    }
  }

  void call(std::size_t which) {
    const int file = files_[which];
    const std::string who = std::to_string(which) + " ";
    char text[8] = "abcdefg";
    text[0] = static_cast<char>('A' + next(26));
    const std::size_t first = next(4);
    const ::iovec parts[] = {{text, first}, {text + first, next(8 - first)}};
    const auto bytes = [&](std::int64_t got) {
      return " " + std::string(text, got > 0 ? static_cast<std::size_t>(got) : 0);
    };
    const auto offset = static_cast<::off_t>(next(20)) - 1;
    switch (next(9)) {
      case 0:
      case 1: {
        const ::ssize_t got = by_.preadv(file, parts, 2, offset);
        note(who + "reads at " + std::to_string(offset), got);
        log_.back() += bytes(got);
        break;
      }
      case 2: {
        const ::ssize_t got = by_.readv(file, parts, 2);
        note(who + "reads", got);
        log_.back() += bytes(got);
        break;
      }
      case 3:
      case 4:
        note(who + "writes at " + std::to_string(offset), by_.pwritev(file, parts, 2, offset));
        break;
      case 5:
        note(who + "writes", by_.writev(file, parts, 2));
        break;
      case 6:
        note(who + "truncates to " + std::to_string(offset), by_.ftruncate(file, offset));
        break;
      case 7: {
        struct ::stat about{};
        note(who + "is", by_.fstat(file, &about));
        log_.back() += S_ISDIR(about.st_mode) ? " a directory" : " of " + std::to_string(about.st_size);
        break;
      }
      default:
        note(who + "syncs", by_.fsync(file));
        if (next(2) == 0) {
          note(who + "closes", by_.close(file));
          files_.erase(files_.begin() + static_cast<std::ptrdiff_t>(which));
        }
    }
  }

  const system_calls& by_;
  std::string root_;
  platform::random numbers_;
  std::vector<int> files_;
  std::vector<std::string> log_;
};

std::string text_of(const std::vector<std::string>& lines, std::size_t from, std::size_t to) {
  std::string text;
  for (; from < to; ++from) {
    text += lines[from] + "\n";
  }
  return text;
}

TEST(disk, does_what_those_of_linux_do) {
  constexpr int calls = 80;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::vector<std::string> here;
    const sim::result found = sim::explore(
        [&] {
          const sim::disk disk;
          here = random_program(of_exploration, "/sim", seed).run(calls);
        },
        {.strategy = sim::strategy::random, .executions = 1});
    ASSERT_TRUE(found) << found.text();
    char root[] = "/dev/shm/pirn_disk_XXXXXX";
    char other[] = "/tmp/pirn_disk_XXXXXX";
    const std::string folder = ::mkdtemp(root) != nullptr ? root : ::mkdtemp(other);
    const std::vector<std::string> there = random_program(of_linux, folder, seed).run(calls);
    std::filesystem::remove_all(folder);
    const std::size_t same = static_cast<std::size_t>(std::ranges::mismatch(here, there).in1 - here.begin());
    ASSERT_EQ(here, there) << "seed " << seed << "\n"
                           << text_of(here, 0, same)
                           << "here:  " << text_of(here, same, std::min(same + 1, here.size()))
                           << "Linux: " << text_of(there, same, std::min(same + 1, there.size()));
  }
}

// -- crashes

constexpr file::options to_write = {.access = file::access::read_write, .create = file::create::if_missing};

bool sync_folder(const char* path = "/sim") {
  auto folder = file::open(path);
  return folder && folder->sync();
}

/// Returns what `paths` hold after a crash behind `program`, in all executions; a missing file is "-".
std::set<std::string> after_crash(const std::function<void()>& program, const std::vector<std::string>& paths,
                                  const sim::options& options = {}) {
  std::set<std::string> all;
  expect_passes(
      [&] {
        sim::disk disk;
        program();
        disk.crash();
        disk.restart();
        std::string found;
        for (const std::string& each : paths) {
          found += disk.contents(each).value_or("-") + " ";
        }
        found.pop_back();
        std::ranges::replace(found, '\0', '0');
        all.insert(found);
      },
      options);
  return all;
}

using outcomes = std::set<std::string>;

TEST(crash, loses_any_part_of_what_was_not_synced) {
  const auto write = [] {
    auto f = file::open("/sim/f", to_write).value();
    f.write_at("ab", 2, 0).value();
    f.sync().value();
    sim::check(sync_folder());
    f.write_at("cdef", 4, 2).value();
  };
  EXPECT_EQ(after_crash(write, {"/sim/f"}), (outcomes{"ab", "abcd", "abcdef", "ab0000"}));
  const auto replace = [] {
    auto f = file::open("/sim/f", to_write).value();
    f.write_at("ab", 2, 0).value();
    f.sync().value();
    sim::check(sync_folder());
    f.truncate(1).value();
    f.write_at("c", 1, 1).value();
  };
  EXPECT_EQ(after_crash(replace, {"/sim/f"}), (outcomes{"ab", "a", "ac", "a0"}));
}

TEST(crash, keeps_what_was_synced) {
  const auto synced = [](sync_scope what) {
    return [what] {
      auto f = file::open("/sim/f", to_write).value();
      f.write_at("abc", 3, 0).value();
      f.sync(what).value();
      sim::check(sync_folder());
    };
  };
  EXPECT_EQ(after_crash(synced(sync_scope::data), {"/sim/f"}), outcomes{"abc"});
  EXPECT_EQ(after_crash(synced(sync_scope::data_and_metadata), {"/sim/f"}), outcomes{"abc"});
}

TEST(crash, loses_names_whose_directory_was_not_synced) {
  const auto names = [](bool sync) {
    return [sync] {
      file::open("/sim/f", to_write).value().sync().value();
      sim::check(sync_folder());
      create_directory("/sim/d").value();
      file::open("/sim/d/g", to_write).value().sync().value();
      rename_path("/sim/f", "/sim/d/f").value();
      if (sync) {
        sim::check(sync_folder("/sim/d") && sync_folder());
      }
    };
  };
  // Without "/sim/d" no name in it is left. The rename is done as a whole or not at all.
  EXPECT_EQ(after_crash(names(false), {"/sim/f", "/sim/d/f", "/sim/d/g"}), (outcomes{" - -", " - ", "-  -", "-  "}));
  EXPECT_EQ(after_crash(names(true), {"/sim/f", "/sim/d/f", "/sim/d/g"}), outcomes{"-  "});
  const auto removed = [] {
    file::open("/sim/f", to_write).value().sync().value();
    sim::check(sync_folder());
    remove_path("/sim/f").value();
  };
  EXPECT_EQ(after_crash(removed, {"/sim/f"}), (outcomes{"", "-"}));
}

TEST(crash, keeps_what_a_synced_rename_needs) {
  const auto move = [] {
    create_directory("/sim/d").value();
    sim::check(sync_folder());
    file::open("/sim/f", to_write).value().sync().value();
    rename_path("/sim/f", "/sim/d/f").value();
    sim::check(sync_folder("/sim/d"));
  };
  EXPECT_EQ(after_crash(move, {"/sim/f", "/sim/d/f"}), outcomes{"- "});
}

TEST(crash, after_a_failed_sync_loses_what_a_later_one_seems_to_save) {
  bool failed = false;
  outcomes saved;
  outcomes seemingly_saved;
  expect_passes(
      [&] {
        sim::disk disk;
        {
          auto f = file::open("/sim/f", to_write);
          if (!f || !sync_folder() || !f->write_at("abc", 3, 0)) {
            return;
          }
          failed = !f->sync();
          if (failed) {
            f->sync().value();
            sim::check(disk.contents("/sim/f") == "abc", "it is still read");
          }
        }
        disk.crash();
        disk.restart();
        (failed ? seemingly_saved : saved).insert(disk.contents("/sim/f").value());
      },
      {.faults = {.disk_errors = true}});
  EXPECT_EQ(saved, outcomes{"abc"});
  EXPECT_EQ(seemingly_saved, outcomes{""});
}

TEST(crash, ends_the_use_of_open_files) {
  expect_passes([] {
    const auto fails = [](const auto& done) { return !done && done.error() == std::errc::io_error; };
    sim::disk disk;
    auto f = file::open("/sim/f", to_write).value();
    disk.crash();
    sim::check(fails(f.write_at("a", 1, 0)));
    sim::check(fails(file::open("/sim/f")));
    disk.restart();
    sim::check(fails(f.sync()));
    auto other = file::open("/sim/g", to_write).value();
    other.write_at("b", 1, 0).value();
    sim::check(disk.contents("/sim/g") == "b");
  });
}

TEST(disk, that_is_full_says_how_much_was_written_and_has_room_after_a_removal) {
  expect_passes([] {
    sim::disk disk(8);
    auto f = file::open("/sim/f", to_write).value();
    f.write_at("abcde", 5, 0).value();
    auto g = file::open("/sim/g", to_write).value();
    const auto put = g.write_at("fghij", 5, 0);
    sim::check(!put && put.error() == std::errc::no_space_on_device && put.error().done == 3 &&
               put.error().path == "/sim/g");
    f.write_at("ABCDE", 5, 0).value();
    remove_path("/sim/f").value();
    sim::check(!g.write_at("ij", 2, 3), "a file that is open needs its room");
    f.close();
    g.write_at("ij", 2, 3).value();
    sim::check(disk.contents("/sim/g") == "fghij");
  });
}

TEST(disk, at_whose_end_a_file_is_open_has_a_leak) {
  const sim::result leak = sim::explore([] {
    const sim::disk disk;
    static file* const kept = new file;
    *kept = file::open("/sim/f", to_write).value();
  });
  EXPECT_EQ(leak.what, sim::outcome::leak) << leak.text();
  EXPECT_NE(leak.message.find("open at its end: 1"), std::string::npos) << leak.text();
}

// -- a program that keeps a log

/// Keeps numbers: adds each to a log, and moves them to a snapshot. A number that `add` has taken survives a crash.
class number_store {
 public:
  enum class mistake { none, no_sync, no_sync_of_new, no_sync_of_folder, no_check };
  explicit number_store(mistake what) : mistake_(what) {}

  [[nodiscard]] bool open() {
    numbers_.clear();
    return load("/sim/snapshot") && load("/sim/log") && open_log();
  }
  [[nodiscard]] bool add(char number) {
    const char record[] = {number, static_cast<char>(number ^ 0x55)};
    if (!log_.append({record, 2}) || (mistake_ != mistake::no_sync && !log_.sync())) {
      return false;
    }
    numbers_ += number;
    return true;
  }
  /// Writes all numbers to a new snapshot, then empties the log.
  [[nodiscard]] bool compact() {
    std::string all;
    for (const char each : numbers_) {
      all += {each, static_cast<char>(each ^ 0x55)};
    }
    auto made =
        file::open("/sim/new", {.access = file::access::write, .create = file::create::if_missing, .truncate = true});
    return made && made->write_at(all.data(), all.size(), 0) && (mistake_ == mistake::no_sync_of_new || made->sync()) &&
           rename_path("/sim/new", "/sim/snapshot") && (mistake_ == mistake::no_sync_of_folder || sync_folder()) &&
           log_.truncate(0) && log_.sync();
  }
  [[nodiscard]] const std::string& numbers() const { return numbers_; }

 private:
  bool open_log() {
    auto made = file::open("/sim/log",
                           {.access = file::access::read_write, .create = file::create::if_missing, .append = true});
    log_ = made ? std::move(*made) : file();
    return log_.is_open() && sync_folder();
  }
  /// Adds the numbers of a file, up to the first record that is not whole. A log may repeat those of the snapshot.
  bool load(const char* path) {
    auto opened = file::open(path);
    if (!opened) {
      return opened.error() == std::errc::no_such_file_or_directory;
    }
    char record[2];
    for (std::uint64_t at = 0; opened->read_exactly_at(record, 2, at); at += 2) {
      if (mistake_ != mistake::no_check && record[1] != (record[0] ^ 0x55)) {
        break;
      }
      if (!numbers_.contains(record[0])) {
        numbers_ += record[0];
      }
    }
    return true;
  }

  mistake mistake_;
  file log_;
  std::string numbers_;
};

/// Adds three numbers and compacts, with a crash at any moment; then looks for the numbers that were taken.
void use_store(number_store::mistake what) {
  sim::disk disk;
  std::string taken;
  {
    const sim::thread uses([&] {
      number_store store(what);
      if (!store.open()) {
        return;
      }
      for (const char each : {'a', 'b', 'c'}) {
        if (!store.add(each)) {
          return;
        }
        taken += each;
        if (each == 'b' && !store.compact()) {
          return;
        }
      }
    });
    const sim::thread ends([&] { disk.crash(); });
  }
  disk.restart();
  number_store again(what);
  sim::check(again.open());
  sim::check(again.numbers().starts_with(taken), "a number is lost");
  sim::check(std::string_view("abc").starts_with(again.numbers()), "a number is made up");
}

TEST(program, that_keeps_a_log_loses_nothing_it_has_taken) {
  using enum number_store::mistake;
  expect_passes([] { use_store(none); }, {.preemptions = 1});
  for (const auto each : {no_sync, no_sync_of_new, no_sync_of_folder, no_check}) {
    const sim::result found = sim::explore([each] { use_store(each); }, {.preemptions = 1});
    EXPECT_EQ(found.what, sim::outcome::assertion) << static_cast<int>(each) << found.text();
  }
}

}  // namespace
