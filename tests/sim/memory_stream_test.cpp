// memory_stream: every byte is read once and in order, whatever stop, deadline, end of a half or close comes between.
#include <pirn/io/memory_stream.hpp>

#include <optional>
#include <string>
#include <utility>

#include "pirn/io/any_stream.hpp"
#include "pirn/io/buffered_reader.hpp"
#include "pirn/io/copy.hpp"
#include "pirn/sim/var.hpp"
#include "sim/together.hpp"

using namespace pirn;
using namespace std::chrono_literals;
using pirn_test::expect_passes;
using pirn_test::run_together;
using pirn_test::soon;

namespace {

/// Both ends of a connection.
struct ends {
  explicit ends(std::size_t capacity) : ends(memory_stream::pair(capacity)) {}
  explicit ends(std::pair<memory_stream, memory_stream> both) : a(std::move(both.first)), b(std::move(both.second)) {}
  memory_stream a, b;
};

std::string read_some(memory_stream& from, std::size_t size = 8) {
  std::string text(size, '?');
  const auto got = from.read(text.data(), size);
  sim::check(got.has_value());
  text.resize(*got);
  return text;
}

/// Reads until the end.
std::string read_all(memory_stream& from) {
  std::string all;
  for (std::string next = "?"; !next.empty();) {
    next = read_some(from);
    all += next;
  }
  return all;
}

/// Returns what is left for a reader, and does not wait.
std::string left_in(memory_stream& from) {
  std::string all;
  char byte;
  while (from.read(&byte, 1, clock::now() + 1ms).value_or(0) == 1) {
    all += byte;
  }
  return all;
}

bool is_busy(const std::error_code& error) { return error == std::errc::device_or_resource_busy; }

// ---- without an end ------------------------------------------------------------------------------------------------

TEST(memory_stream, carries_bytes_in_order) {
  for (const std::size_t capacity : {std::size_t{1}, std::size_t{2}}) {
    for (const unsigned threads : {0U, 1U}) {
      expect_passes([=] {
        ends e(capacity);
        run_together({[&] { e.a.write("abc").value(); },
                      [&] {
                        char got[3];
                        e.b.read_exactly(got, 3).value();
                        sim::check(std::string(got, 3) == "abc");
                      }},
                     {.threads = threads, .migratable = threads == 0});
        sim::check(left_in(e.b).empty());
      });
    }
  }
}

TEST(memory_stream, shows_what_was_done_before_the_write) {
  expect_passes([] {
    ends e(1);
    sim::var<int> of_writer(0);
    sim::var<int> of_reader(0);
    run_together({[&] {
                    of_writer = 1;
                    e.a.write("x").value();
                    e.a.write("y").value();  // once there is room
                    sim::check(of_reader == 1);
                  },
                  [&] {
                    of_reader = 1;
                    read_some(e.b);
                    sim::check(of_writer == 1);
                  }});
  });
}

TEST(memory_stream, two_writers_and_two_readers_share_it) {
  expect_passes(
      [] {
        ends e(1);
        std::string got;
        const auto read_one = [&] { got += read_some(e.b, 1); };
        run_together({[&] { e.a.write("1").value(); }, [&] { e.a.write("2").value(); }, read_one, read_one});
        sim::check(got == "12" || got == "21");
      },
      {.preemptions = 1});
}

TEST(memory_stream, waits_for_data_beside_a_reader) {
  expect_passes([] {
    ends e(2);
    run_together(
        {[&] { e.b.wait_readable().value(); }, [&] { e.b.wait_readable().value(); }, [&] { e.a.write("x").value(); }});
    sim::check(left_in(e.b) == "x");
  });
}

// ---- deadlines and stops -------------------------------------------------------------------------------------------

TEST(memory_stream, reads_as_a_deadline_passes) {
  expect_passes([] {
    ends e(1);
    const time_point when = soon();
    std::string got;
    run_together({[&] {
                    static_cast<void>(this_fiber::sleep_until(when));
                    e.a.write("x").value();
                  },
                  [&] {
                    char byte = 0;
                    if (const auto read = e.b.read(&byte, 1, when)) {
                      got.assign(*read, byte);  // none or one
                    } else {
                      sim::check(read.error() == io_error::timed_out);
                    }
                  }});
    sim::check(got + left_in(e.b) == "x", "neither lost nor doubled");
  });
}

TEST(memory_stream, writes_as_a_deadline_passes) {
  expect_passes(
      [] {
        ends e(1);
        const time_point when = soon();
        std::string read;
        std::string written = "0";
        run_together({[&] {
                        static_cast<void>(this_fiber::sleep_until(when));
                        read = read_some(e.b);
                      },
                      [&] {
                        if (const auto put = e.a.write_some("1", 1, when)) {
                          written += '1';
                        } else {
                          sim::check(put.error() == io_error::timed_out);
                        }
                      },
                      [&] {
                        if (e.a.write_some("1", 1, when)) {
                          written += '1';
                        }
                      }},
                     {.before = [&] { e.a.write("0").value(); }});
        sim::check(read + left_in(e.b) == written, "what was taken is read");
      },
      {.preemptions = 1});
}

TEST(memory_stream, a_stopped_reader_leaves_the_byte_to_another) {
  expect_passes([] {
    ends e(1);
    std::vector<fiber> fibers;
    int got = 0;
    const auto read_one = [&] {
      char byte;
      const auto read = e.b.read(&byte, 1);
      sim::check(read || read.error() == io_error::stopped);
      if (read) {
        ++got;
        e.a.close();  // otherwise the other reader would wait for ever
      }
    };
    run_together({[&] {
                    fibers[1].request_stop();
                    e.a.write("x").value();
                  },
                  read_one,
                  [&] {
                    char byte;
                    got += static_cast<int>(e.b.read(&byte, 1).value());
                  }},
                 {.fibers = &fibers});
    sim::check(got == 1);
  });
}

TEST(memory_stream, a_stopped_writer_leaves_the_room_to_another) {
  expect_passes([] {
    ends e(1);
    std::vector<fiber> fibers;
    std::string written = "0";
    const auto write_one = [&] {
      if (const auto put = e.a.write_some("1", 1)) {
        written += '1';
      } else {
        sim::check(put.error() == io_error::stopped || put.error() == std::errc::broken_pipe);
      }
    };
    std::string read;
    run_together({[&] {
                    fibers[1].request_stop();
                    read = read_some(e.b);
                    read += read_some(e.b);  // from the writer that is not stopped, or from both
                    if (read.size() < 3) {
                      read += left_in(e.b);
                    }
                    e.b.close();
                  },
                  write_one, write_one},
                 {.before = [&] { e.a.write("0").value(); }, .fibers = &fibers});
    sim::check(read == written, "what was taken is read");
  });
}

// ---- ends ----------------------------------------------------------------------------------------------------------

TEST(memory_stream, what_was_written_is_read_before_the_end) {
  for (const bool closes : {false, true}) {
    expect_passes([closes] {
      ends e(1);
      run_together({[&] {
                      e.a.write("ab").value();
                      if (closes) {
                        e.a.close();
                      } else {
                        e.a.shutdown(shutdown_half::write).value();
                      }
                    },
                    [&] { sim::check(read_all(e.b) == "ab"); }});
    });
  }
}

TEST(memory_stream, is_closed_beside_its_own_calls) {
  expect_passes([] {
    ends e(1);
    std::string written;
    run_together({[&] {
                    char byte;
                    sim::check(e.a.read(&byte, 1).error() == io_error::closed);
                  },
                  [&] {
                    for (const char* next : {"1", "2"}) {
                      if (const auto put = e.a.write_some(next, 1)) {
                        written += next;
                      } else {
                        sim::check(put.error() == io_error::closed);
                      }
                    }
                  },
                  [&] { e.a.close(); }});
    sim::check(read_all(e.b) == written, "what was taken is read");
  });
}

TEST(memory_stream, is_closed_beside_calls_of_the_peer) {
  expect_passes([] {
    ends e(1);
    run_together({[&] {
                    char byte;
                    sim::check(e.b.read(&byte, 1) == 0U);
                  },
                  [&] {
                    const auto put = write_all(e.b, "12");
                    sim::check(put.error == std::errc::broken_pipe && put.written <= 1);
                    sim::check(e.b.unacknowledged() == 0U);
                  },
                  [&] { e.a.close(); }});
  });
}

TEST(memory_stream, both_ends_are_closed_at_once) {
  expect_passes(
      [] {
        ends e(1);
        const auto use_and_close = [](memory_stream& own) {
          return [&own] {
            char byte;
            const auto got = own.read(&byte, 1);
            sim::check(got ? *got == 0 : got.error() == io_error::closed);
            own.close();
          };
        };
        run_together({use_and_close(e.a), use_and_close(e.b), [&] { e.a.close(); }, [&] { e.b.close(); }},
                     {.before = [] {}});
      },
      {.preemptions = 1});
}

TEST(memory_stream, an_end_is_destroyed_while_a_call_waits) {
  expect_passes([] {
    std::optional<ends> e(std::in_place, 1);
    bool begun = false;
    run_together({[&] {
                    char byte;
                    begun = true;
                    const auto got = e->b.read(&byte, 1);
                    sim::check(!got && got.error() == io_error::closed);
                  },
                  [&] {
                    while (!begun) {
                      static_cast<void>(this_fiber::sleep_for(1ms));
                    }
                    static_cast<void>(this_fiber::sleep_for(1ms));  // it waits now
                    e.reset();
                  }});
  });
}

TEST(memory_stream, an_end_of_reading_ends_both_sides) {
  expect_passes([] {
    ends e(1);
    run_together({[&] { sim::check(read_some(e.b).size() <= 1); },
                  [&] {
                    const auto put = write_all(e.a, "12");
                    sim::check(put || put.error == std::errc::broken_pipe);
                  },
                  [&] { e.b.shutdown(shutdown_half::read).value(); }});
    sim::check(e.a.unacknowledged() == 0U);
    sim::check(read_some(e.b).empty());
  });
}

// ---- views ---------------------------------------------------------------------------------------------------------

TEST(memory_stream, a_view_keeps_its_bytes_beside_writes_and_ends) {
  for (const bool closes : {false, true}) {
    expect_passes(
        [closes] {
          ends e(2);
          run_together({[&] {
                          auto view = e.b.lend();
                          sim::check(view ? view->text() == "ab" : closes && view.error() == io_error::closed);
                          if (view) {
                            view->consume(1);
                            this_fiber::yield();
                            sim::check(view->text() == "b");
                          }
                        },
                        [&] { static_cast<void>(e.a.write("cd")); },
                        [&] {
                          if (closes) {
                            e.b.close();
                          }
                          e.a.close();
                        }},
                       {.before = [&] { e.a.write("ab").value(); }});
        },
        {.preemptions = 1});
  }
}

TEST(memory_stream, a_view_is_ended_beside_a_writer_and_a_close) {
  expect_passes(
      [] {
        ends e(1);
        std::string got;
        std::size_t written = 0;
        run_together({[&] {
                        auto view = e.b.lend();
                        got = view->text();
                        view->consume(1);
                        view->release();
                        got += read_all(e.b);
                      },
                      [&] { written = write_all(e.a, "bc").written; }, [&] { e.a.close(); }},
                     {.before = [&] { e.a.write("a").value(); }});
        sim::check(got == std::string("abc").substr(0, 1 + written), "each byte once");
      },
      {.preemptions = 1});
}

TEST(memory_stream, a_view_outlives_both_ends) {
  expect_passes([] {
    std::optional<ends> e(std::in_place, 2);
    read_view view;
    run_together({[&] {
                    view = std::move(e->b.lend().value());
                    e->b = {};
                  },
                  [&] { e->a = {}; }},
                 {.before = [&] { e->a.write("ab").value(); }});
    e.reset();
    sim::check(view.text() == "ab");
    view.consume(1);
    view.release();
  });
}

TEST(memory_stream, a_view_and_a_reader_share_what_comes) {
  expect_passes([] {
    ends e(2);
    std::string got;
    run_together({[&] {
                    char byte;
                    if (const auto read = e.b.read(&byte, 1)) {
                      got += *read == 1 ? std::string(1, byte) : "";
                    } else {
                      sim::check(is_busy(read.error()));
                    }
                  },
                  [&] {
                    if (auto view = e.b.lend()) {
                      got += view->text();
                      view->consume(view->text().size());
                    } else {
                      sim::check(is_busy(view.error()));
                    }
                  },
                  [&] {
                    e.a.write("xy").value();
                    e.a.close();
                  }});
    sim::check((got + left_in(e.b)).size() == 2, "each byte once");
  });
}

TEST(memory_stream, the_end_of_a_view_wakes_a_reader) {
  expect_passes(
      [] {
        ends e(2);
        std::string got;
        run_together({[&] {
                        for (bool done = false; !done;) {
                          char byte;
                          const auto read = e.b.read(&byte, 1);
                          done = read.has_value();
                          got += done ? std::string(1, byte) : "";
                          this_fiber::yield();
                        }
                      },
                      [&] {
                        if (auto view = e.b.lend()) {
                          got += view->text().front();
                          view->consume(1);
                        }
                      },
                      [&] { e.a.write("xy").value(); }});
        sim::check((got + left_in(e.b)).size() == 2);
      },
      {.preemptions = 1});
}

// ---- on top --------------------------------------------------------------------------------------------------------

TEST(copy, loses_nothing_of_a_lending_stream) {
  expect_passes([] {
    ends from(2);
    ends to(1);
    const time_point when = soon();
    copy_result first;
    run_together({[&] {
                    first = pirn::copy(from.b, to.a, when);
                    sim::check(first.error == io_error::timed_out && first.read == first.written);
                  },
                  [&] {
                    static_cast<void>(this_fiber::sleep_until(when));
                    sim::check(read_some(to.b, 1) == "a");
                  }},
                 {.before = [&] { from.a.write("ab").value(); }});
    from.a.close();
    sim::check(left_in(to.b) + left_in(from.b) == "b");
  });
}

TEST(buffered_reader, reads_a_line_beside_a_deadline) {
  expect_passes([] {
    ends e(2);
    const time_point when = soon();
    run_together({[&] {
                    static_cast<void>(this_fiber::sleep_until(when));
                    e.a.write("line\n").value();
                  },
                  [&] {
                    buffered_reader reader(e.b, 16);
                    auto line = reader.read_line(8, when);
                    if (!line) {
                      sim::check(line.error() == io_error::timed_out);
                      line = reader.read_line(8);
                    }
                    sim::check(line == "line");
                  }});
  });
}

}  // namespace
