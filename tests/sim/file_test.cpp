// Files, directories and pipes in an exploration: whole writes by short ones, errors of the disk at any call, and every
// order of a call, a stop, a deadline, a close and a second caller, with either half of an engine.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <pirn/fiber/scope.hpp>
#include <pirn/fiber/this_fiber.hpp>
#include <pirn/io/copy.hpp>
#include <pirn/io/directory.hpp>
#include <pirn/io/file.hpp>
#include <pirn/io/pipe.hpp>
#include <pirn/sim/disk.hpp>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "sim/fibers.hpp"

using namespace pirn;
using namespace std::chrono_literals;
using pirn_test::expect_passes;

namespace {

constexpr file::options to_write = {.access = file::access::read_write, .create = file::create::if_missing};
constexpr file::options to_append = {
    .access = file::access::read_write, .create = file::create::if_missing, .append = true};

/// Explores a program with an engine that carries out requests, and with one that only waits for readiness.
void expect_passes_with_both(const std::function<void(engine_kind)>& program, const sim::options& options) {
  for (const engine_kind each : {engine_kind::uring, engine_kind::epoll}) {
    expect_passes([&] { program(each); }, options);
  }
}

void run_fibers(engine_kind by, unsigned workers, const std::vector<std::function<void()>>& bodies) {
  pirn_test::run_fibers({.workers = workers, .engine = by}, bodies);
}

/// Writes a text, and checks that the file has what the result says. Returns whether all was written.
bool write_or_fail(const sim::disk& disk, file& to, std::string_view text, io_error error,
                   time_point deadline = never) {
  const auto put = to.write_at(text.data(), text.size(), 0, deadline);
  const std::string found = disk.contents("/sim/f").value();
  if (put) {
    sim::check(found == text);
    return true;
  }
  sim::check(put.error() == error && put.error().path == "/sim/f");
  sim::check(found == text.substr(0, put.error().done), "the error says how much was written");
  return false;
}

std::string_view text_of(const file::mapping& of) {
  return {reinterpret_cast<const char*>(of.bytes().data()), of.bytes().size()};
}

TEST(file, a_mapping_has_the_bytes_of_its_moment) {
  expect_passes_with_both(
      [](engine_kind by) {
        sim::disk disk;
        run_fibers(by, 1, {[&] {
                     constexpr std::size_t page = 4096;
                     const std::string text = std::string(page, 'a') + "bcdef";
                     auto file = file::open("/sim/f", to_write).value();
                     sim::check(file.write_at(text.data(), text.size(), 0).has_value());
                     auto own = file.map_private(page, 5).value();
                     const auto middle = file.map(page + 1, 3).value();
                     sim::check(file.write_at("xyz", 3, page).has_value());
                     own.writable()[0] = std::byte{'B'};
                     sim::check(text_of(own) == "Bcdef" && text_of(middle) == "cde");
                     sim::check(disk.contents("/sim/f") == std::string(page, 'a') + "xyzef");
                     sim::check(file.map(page, 6).error() == io_error::end_of_stream);
                     file.close();
                     sim::check(text_of(middle) == "cde", "it outlives the file");
                     unsigned char resident;
                     std::byte* const memory = own.writable().data();
                     sim::check(::mincore(memory, page, &resident) == 0);
                     own = {};
                     sim::check(::mincore(memory, page, &resident) != 0, "it is freed");
                     auto output = file::open("/sim/f", {.access = file::access::write}).value();
                     sim::check(output.map(0, 1).error() == std::errc::permission_denied);
                   }});
      },
      {.preemptions = 0});
}

TEST(file, a_mapping_beside_a_crash) {
  expect_passes_with_both(
      [](engine_kind by) {
        sim::disk disk;
        auto file = file::open("/sim/f", to_write).value();
        sim::check(file.write_at("abc", 3, 0).has_value());
        run_fibers(by, 2,
                   {[&] {
                      const auto mapped = file.map(0, 3);
                      sim::check(mapped ? text_of(*mapped) == "abc" : mapped.error() == std::errc::io_error);
                    },
                    [&] { disk.crash(); }});
        file.close();
      },
      {.preemptions = 1});
}

TEST(file, written_and_read_in_short_pieces_is_whole) {
  expect_passes_with_both(
      [](engine_kind by) {
        sim::disk disk;
        run_fibers(by, 1, {[&] {
                     auto f = file::open("/sim/f", to_write).value();
                     const ::iovec parts[] = {{const_cast<char*>("ab"), 2}, {const_cast<char*>("cde"), 3}};
                     f.write_at(parts, 1).value();
                     char got[5];
                     f.read_exactly_at(got, sizeof got, 1).value();
                     sim::check(std::string_view(got, 5) == "abcde" && f.size() == 6u);
                     f.truncate(2).value();
                     const auto short_read = f.read_exactly_at(got, 2, 1);
                     sim::check(!short_read && short_read.error() == io_error::end_of_stream);
                   }});
        sim::check(disk.contents("/sim/f") == std::string_view("\0a", 2));
      },
      {.preemptions = 0, .faults = {.short_transfers = true, .slow_disk = true, .max_per_execution = 2}});
}

TEST(file, is_read_from_the_cache_or_lets_others_run_until_the_disk_has_answered) {
  for (const engine_kind by : {engine_kind::uring, engine_kind::epoll}) {
    std::set<bool> waited;
    expect_passes(
        [&] {
          sim::disk disk;
          auto f = file::open("/sim/f", to_write).value();
          f.write_at("a", 1, 0).value();
          bool other_has_run = false;
          run_fibers(by, 1,
                     {[&] {
                        char byte;
                        sim::check(f.read_at(&byte, 1, 0) == 1u && byte == 'a');
                        waited.insert(other_has_run);
                      },
                      [&] { other_has_run = true; }});
        },
        {.preemptions = 0, .faults = {.slow_disk = true}});
    EXPECT_EQ(waited, (std::set{false, true}));
  }
}

TEST(file, on_a_disk_that_fails_at_any_call_says_so) {
  expect_passes_with_both(
      [](engine_kind by) {
        sim::disk disk;
        int failures = 0;
        const auto fails = [&](const auto& done, std::string_view message) {
          failures += done ? 0 : 1;
          sim::check(done || done.error().message() == message, message);
          return !done;
        };
        run_fibers(
            by, 1, {[&] {
              auto f = file::open("/sim/f", to_write);
              if (fails(f, "open /sim/f: Input/output error")) {
                return;
              }
              const auto put = f->write_at("abc", 3, 0);
              fails(put, put || put.error().done == 0 ? "write /sim/f: Input/output error"
                                                      : "write /sim/f: Input/output error (1 bytes were done)");
              sim::check(disk.contents("/sim/f") == std::string_view("abc").substr(0, put ? 3 : put.error().done));
              char byte;
              fails(f->read_at(&byte, 1, 0), "read /sim/f: Input/output error");
              fails(f->sync(), "sync /sim/f: Input/output error");
              fails(f->size(), "ask for the size of /sim/f: Input/output error");
              fails(f->truncate(1), "truncate /sim/f: Input/output error");
              fails(rename_path("/sim/f", "/sim/g"), "rename /sim/f to /sim/g: Input/output error");
              fails(list_directory("/sim"), "list /sim: Input/output error");
            }});
        sim::check(failures <= 2);
      },
      {.preemptions = 0, .faults = {.short_transfers = true, .disk_errors = true, .max_per_execution = 2}});
}

TEST(file, appended_by_two_has_each_once) {
  const auto append_twice = [](const std::function<void(std::function<void()>, std::function<void()>)>& run) {
    expect_passes(
        [&] {
          sim::disk disk;
          auto f = file::open("/sim/f", to_append).value();
          run([&] { f.append("ab").value(); }, [&] { f.append("cd").value(); });
          const auto all = disk.contents("/sim/f");
          sim::check(all == "abcd" || all == "cdab");
        },
        {.preemptions = 1});
  };
  append_twice([](const auto& one, const auto& two) { run_fibers(engine_kind::uring, 2, {one, two}); });
  append_twice([](const auto& one, const auto& two) {
    const sim::thread first(one);
    const sim::thread second(two);
  });
}

TEST(file, a_write_beside_a_stop) {
  expect_passes_with_both(
      [](engine_kind by) {
        sim::disk disk;
        auto f = file::open("/sim/f", to_write).value();
        pirn_test::run_beside(
            by, [&] { write_or_fail(disk, f, "abc", io_error::stopped); }, [](fiber& waits) { waits.request_stop(); });
        const std::string after = disk.contents("/sim/f").value();
        static_cast<void>(this_fiber::sleep_for(5ms));
        sim::check(disk.contents("/sim/f") == after, "the kernel writes after the call");
      },
      {.preemptions = 1, .faults = {.short_transfers = true, .slow_disk = true}});
}

TEST(file, a_write_beside_a_deadline) {
  expect_passes_with_both(
      [](engine_kind by) {
        sim::disk disk;
        auto f = file::open("/sim/f", to_write).value();
        run_fibers(by, 1, {[&] {
                     write_or_fail(disk, f, "abc", io_error::timed_out, platform::now() + 1ms);
                     const std::string after = disk.contents("/sim/f").value();
                     static_cast<void>(this_fiber::sleep_for(5ms));
                     sim::check(disk.contents("/sim/f") == after, "the kernel writes after the call");
                   }});
      },
      {.preemptions = 1, .faults = {.short_transfers = true, .slow_disk = true, .max_per_execution = 2}});
}

TEST(file, a_read_beside_a_stop_and_a_deadline_touches_nothing_later) {
  expect_passes_with_both(
      [](engine_kind by) {
        sim::disk disk;
        auto f = file::open("/sim/f", to_write).value();
        f.write_at("a", 1, 0).value();
        pirn_test::run_beside(
            by,
            [&] {
              char byte = '?';
              const auto got = f.read_at(&byte, 1, 0, platform::now() + 1ms);
              sim::check(got ? *got == 1 && byte == 'a'
                             : byte == '?' && (got.error() == io_error::stopped || got.error() == io_error::timed_out));
              byte = '!';
              static_cast<void>(this_fiber::sleep_for(5ms));
              sim::check(byte == '!', "the kernel reads into memory that was given back");
            },
            [](fiber& waits) { waits.request_stop(); });
      },
      {.preemptions = 1, .faults = {.slow_disk = true}});
}

TEST(file, a_close_ends_a_write) {
  expect_passes_with_both(
      [](engine_kind by) {
        sim::disk disk;
        auto f = file::open("/sim/f", to_write).value();
        run_fibers(by, 2,
                   {[&] { write_or_fail(disk, f, "ab", io_error::closed); },
                    [&] {
                      f.close();
                      const std::string after = disk.contents("/sim/f").value();
                      static_cast<void>(this_fiber::sleep_for(5ms));
                      sim::check(disk.contents("/sim/f") == after, "the kernel writes after the close");
                    }});
      },
      {.preemptions = 1, .faults = {.short_transfers = true, .slow_disk = true}});
}

TEST(file, a_close_beside_a_stop_and_another_close_is_made) {
  expect_passes_with_both(
      [](engine_kind by) {
        sim::disk disk;  // its end looks for open files
        auto f = file::open("/sim/f", to_write).value();
        pirn_test::run_beside(
            by, [&] { f.close(); },
            [&](fiber& closer) {
              closer.request_stop();
              f.close();
            });
      },
      {.preemptions = 1});
}

TEST(file, of_two_callers_one_is_stopped_and_the_file_closed) {
  expect_passes_with_both(
      [](engine_kind by) {
        sim::disk disk;
        auto f = file::open("/sim/f", to_append).value();
        std::string wanted;
        {
          std::optional<sim::one_schedule> apart(std::in_place);
          runtime one({.workers = 1, .engine = by});
          const auto append = [&](const char* letter) {
            return [&f, &wanted, letter] {
              const auto put = f.append(letter);
              wanted += put ? letter : "";
              sim::check(put || put.error() == io_error::stopped || put.error() == io_error::closed);
            };
          };
          fiber stopped = one.spawn(append("a"));
          fiber other = one.spawn(append("b"));
          apart.reset();
          stopped.request_stop();
          f.close();
          stopped.join();
          other.join();
          apart.emplace();
        }
        std::string found = disk.contents("/sim/f").value();
        std::ranges::sort(found);
        std::ranges::sort(wanted);
        sim::check(found == wanted, "a byte is lost, or written although the call has failed");
      },
      {.preemptions = 1, .faults = {.slow_disk = true}});
}

TEST(file, an_open_beside_a_stop_leaks_no_descriptor) {
  expect_passes_with_both(
      [](engine_kind by) {
        sim::disk disk;  // its end looks for open files
        pirn_test::run_beside(
            by,
            [&] {
              const auto made = file::open("/sim/f", to_write);
              sim::check(made ? disk.contents("/sim/f") == "" : made.error() == io_error::stopped);
            },
            [](fiber& waits) { waits.request_stop(); });
      },
      {.preemptions = 1, .faults = {.slow_disk = true}});
}

TEST(file, a_sync_beside_a_stop_and_a_crash_keeps_its_promise) {
  expect_passes_with_both(
      [](engine_kind by) {
        sim::disk disk;
        bool synced = false;
        {
          auto f = file::open("/sim/f", to_write).value();
          f.write_at("ab", 2, 0).value();
          file::open("/sim").value().sync().value();
          pirn_test::run_beside(by, [&] { synced = f.sync().has_value(); }, [](fiber& waits) { waits.request_stop(); });
        }
        disk.crash();
        disk.restart();
        sim::check(!synced || disk.contents("/sim/f") == "ab");
      },
      {.preemptions = 1, .faults = {.slow_disk = true}});
}

TEST(file, a_scope_with_a_deadline_ends_a_write) {
  expect_passes_with_both(
      [](engine_kind by) {
        sim::disk disk;
        auto f = file::open("/sim/f", to_write).value();
        run_fibers(by, 1, {[&] {
                     scope limited({.deadline = platform::now() + 1ms});
                     write_or_fail(disk, f, "ab", io_error::expired);
                   }});
      },
      {.preemptions = 1, .faults = {.short_transfers = true, .slow_disk = true, .max_per_execution = 2}});
}

TEST(directory, listed_while_names_come_and_go) {
  expect_passes(
      [] {
        sim::disk disk;
        create_directory("/sim/d").value();
        static_cast<void>(file::open("/sim/d/a", to_write).value());
        const sim::thread lists([] {
          const auto found = list_directory("/sim", directory_entry::depth::all);
          sim::check(found.has_value(), "a directory that goes meanwhile is no error");
          std::string all;
          for (const directory_entry& each : found.value()) {
            all += each.path + " ";
            sim::check(each.kind ==
                       (each.path == "d" ? directory_entry::type::directory : directory_entry::type::file));
          }
          sim::check(all == "d d/a " || all == "d " || all == "b " || all == "b d " || all == "b d d/a ", all);
        });
        const sim::thread changes([] {
          rename_path("/sim/d/a", "/sim/b").value();
          remove_path("/sim/d").value();
        });
      },
      {.preemptions = 1});
}

TEST(file, is_copied_and_read_by_lines_as_a_stream) {
  expect_passes(
      [] {
        sim::disk disk;
        auto from = file::open("/sim/f", to_write).value();
        from.write_at("abc", 3, 0).value();
        auto to = file::open("/sim/g", to_write).value();
        file::cursor source(from);
        file::cursor target(to, 1);
        const copy_result done = copy(source, target);
        sim::check(done && done.written == 3 && target.offset() == 4);
        sim::check(disk.contents("/sim/g") == std::string_view("\0abc", 4));
      },
      {.faults = {.short_transfers = true, .slow_disk = true, .max_per_execution = 2}});
}

// -- pipes

TEST(pipe_end, carries_bytes_in_order_and_then_the_end) {
  expect_passes_with_both(
      [](engine_kind by) {
        auto ends = pipe_end::make_pair().value();
        run_fibers(by, 2,
                   {[&] {
                      ends.second.write("abc").value();
                      ends.second.shutdown(shutdown_half::write).value();
                    },
                    [&] {
                      std::string all;
                      for (char text[2];;) {
                        const std::size_t got = ends.first.read(text, sizeof text).value();
                        all.append(text, got);
                        if (got == 0) {
                          break;
                        }
                      }
                      sim::check(all == "abc");
                    }});
      },
      {.preemptions = 1, .faults = {.short_transfers = true}});
}

TEST(pipe_end, that_is_full_is_written_whole) {
  expect_passes_with_both(
      [](engine_kind by) {
        auto ends = pipe_end::make_pair().value();
        const std::string much(5000, 'm');  // the pipe of an exploration holds 4096 bytes
        run_fibers(by, 2,
                   {[&] { ends.second.write(much).value(); },
                    [&] {
                      std::string all(much.size(), '.');
                      ends.first.read_exactly(all.data(), all.size()).value();
                      sim::check(all == much);
                    }});
      },
      {.preemptions = 1});
}

TEST(pipe_end, two_writers_are_not_mixed) {
  expect_passes_with_both(
      [](engine_kind by) {
        auto ends = pipe_end::make_pair().value();
        run_fibers(by, 2,
                   {[&] { ends.second.write("ab").value(); }, [&] { ends.second.write("cd").value(); },
                    [&] {
                      char text[4];
                      ends.first.read_exactly(text, 4).value();
                      const std::string_view all(text, 4);
                      sim::check(all == "abcd" || all == "cdab");
                    }});
      },
      {.preemptions = 1, .faults = {.short_transfers = true}});
}

TEST(pipe_end, a_byte_beside_a_stop_and_a_deadline_is_not_lost) {
  expect_passes_with_both(
      [](engine_kind by) {
        auto ends = pipe_end::make_pair().value();
        bool got = false;
        pirn_test::run_beside(
            by,
            [&] {
              char byte = '?';
              const auto read = ends.first.read(&byte, 1, platform::now() + 1ms);
              got = read.has_value();
              sim::check(got ? byte == 'a'
                             : byte == '?' &&
                                   (read.error() == io_error::stopped || read.error() == io_error::timed_out));
            },
            [&](fiber& waits) {
              ends.second.write("a").value();
              waits.request_stop();
            });
        char byte = '?';
        sim::check(got || ends.first.read(&byte, 1, platform::now() + 1s) == 1u, "a byte is lost");
      },
      {.preemptions = 1});
}

TEST(pipe_end, a_close_of_either_end_ends_the_other) {
  expect_passes_with_both(
      [](engine_kind by) {
        auto ends = pipe_end::make_pair().value();
        run_fibers(by, 2,
                   {[&] {
                      const auto put = ends.second.write("a");
                      sim::check(put || put.error() == std::errc::broken_pipe);
                    },
                    [&] { ends.first.close(); }});
        const auto late = ends.second.write("a");
        sim::check(!late && late.error() == std::errc::broken_pipe);
        auto others = pipe_end::make_pair().value();
        run_fibers(by, 2,
                   {[&] {
                      char byte;
                      const auto got = others.first.read(&byte, 1);
                      sim::check(got ? *got == 0 : got.error() == io_error::closed);
                    },
                    [&] {
                      others.second.close();
                      others.first.close();
                    }});
      },
      {.preemptions = 1});
}

}  // namespace
