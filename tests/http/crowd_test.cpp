// More clients than there is room for, and clients that claim more than their share.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "http/child_server.hpp"

namespace {

using namespace test;
namespace http = pirn::http;

/// Waits until the server has `count` connections, and those that it has answered are idle.
void settle(running_server& running, std::size_t count) {
  ASSERT_TRUE(wait_until([&] { return running.server.statistics().connections == count; }));
  ASSERT_TRUE(pirn::this_fiber::sleep_for(5ms));
}

TEST(crowd, at_the_limit_the_one_that_has_waited_longest_makes_room) {
  with_server(hello, {.connection_limit = 4}, [](running_server& running) {
    std::vector<client> clients;
    for (std::size_t i = 0; i < 4; ++i) {
      clients.emplace_back(running.at);
      settle(running, i + 1);
    }
    EXPECT_EQ(clients[0].ask(get_hello).status, 200);  // so now another one has waited longest
    settle(running, 4);
    EXPECT_EQ(running.server.statistics().made_room, 0u);
    client fifth(running.at);
    EXPECT_EQ(fifth.ask(get_hello).status, 200);
    EXPECT_TRUE(clients[1].ends_cleanly());
    EXPECT_EQ(running.server.statistics().made_room, 1u);
    EXPECT_LE(running.server.statistics().connections, 4u);
    client sixth(running.at);
    EXPECT_EQ(sixth.ask(get_hello).status, 200);
    EXPECT_TRUE(clients[2].ends_cleanly());
    for (client* c : {&clients[0], &clients[3], &fifth, &sixth}) {
      EXPECT_EQ(c->ask(get_hello).status, 200);
    }
  });
}

TEST(crowd, one_that_has_asked_for_nothing_whole_makes_room_too) {
  for (const std::string_view part : {"GET / HTTP/1.1\r\nHo", "GET / HTTP/1.1\r\nHost: h\r\n\r\nGET / HT"}) {
    with_server(hello, {.connection_limit = 1}, [&](running_server& running) {
      client slow(running.at);
      slow.send(part);
      settle(running, 1);
      client other(running.at);
      EXPECT_EQ(other.ask(get_hello).status, 200);
    });
  }
}

TEST(crowd, one_that_does_not_end_makes_room_too) {
  with_server(hello, {.linger_timeout = 1h, .connection_limit = 1}, [&](running_server& running) {
    client slow(running.at);
    EXPECT_EQ(slow.get("/", "Connection: close\r\n").status, 200);
    settle(running, 1);
    client other(running.at);
    EXPECT_EQ(other.ask(get_hello).status, 200);
  });
}

TEST(crowd, one_that_does_not_read_its_answer_makes_room_too) {
  const auto answer = [](const http::request& request, http::response& to) {
    to.body(std::string(request.target == "/" ? 250'000 : 1, 'a'));
  };
  for (const std::string_view more : {"", "Connection: close\r\n"}) {
    with_server(answer, {.connection_limit = 1}, [&](running_server& running) {
      client slow(running.at);
      slow.send("GET / HTTP/1.1\r\nHost: h\r\n" + std::string(more) + "\r\n");
      settle(running, 1);
      const auto begin = std::chrono::steady_clock::now();
      client other(running.at);
      EXPECT_EQ(other.ask(get_hello).status, 200);
      EXPECT_LT(std::chrono::steady_clock::now() - begin, 8s);  // a second for the messages on their way
      EXPECT_EQ(slow.receive().status, -1) << "no reset";
    });
  }
}

TEST(crowd, one_that_is_answered_makes_no_room) {
  std::atomic<int> inside{0};
  const auto slow = [&](const http::request&, http::response& answer) {
    ++inside;
    static_cast<void>(pirn::this_fiber::sleep_for(300ms));
    answer.body("slow");
  };
  with_server(slow, {.connection_limit = 1}, [&](running_server& running) {
    client first(running.at);
    first.send(get_hello);
    ASSERT_TRUE(wait_until([&] { return inside == 1; }));
    client second(running.at);
    second.send(get_hello);
    EXPECT_EQ(first.receive().body, "slow");
    EXPECT_EQ(second.receive().body, "slow");  // when the first one is idle
    EXPECT_TRUE(first.ends_cleanly());
    EXPECT_EQ(running.server.statistics().made_room, 1u);
  });
}

TEST(crowd, at_the_limit_none_makes_room_before_another_comes) {
  with_server(hello, {.connection_limit = 1}, [](running_server& running) {
    client only(running.at);
    EXPECT_EQ(only.ask(get_hello).status, 200);
    ASSERT_TRUE(pirn::this_fiber::sleep_for(150ms));
    EXPECT_EQ(only.ask(get_hello).status, 200);
    EXPECT_EQ(running.server.statistics().made_room, 0u);
    EXPECT_EQ(running.server.statistics().accept_pauses, 0u);
    client another(running.at);
    EXPECT_EQ(another.ask(get_hello).status, 200);
    EXPECT_TRUE(only.ends_cleanly());
    EXPECT_EQ(running.server.statistics().made_room, 1u);
  });
}

TEST(crowd, a_stop_of_a_full_server_serves_who_is_there) {
  std::atomic<int> inside{0};
  const auto slow = [&](const http::request&, http::response& answer) {
    ++inside;
    static_cast<void>(pirn::this_fiber::sleep_for(200ms));
    answer.body("slow");
  };
  with_server(slow, {.linger_timeout = 50ms, .connection_limit = 1}, [&](running_server& running) {
    client first(running.at);
    first.send(get_hello);
    ASSERT_TRUE(wait_until([&] { return inside == 1; }));
    client second(running.at);
    second.send(get_hello);
    ASSERT_TRUE(pirn::this_fiber::sleep_for(10ms));
    running.stop();
    EXPECT_EQ(first.receive().body, "slow");
    EXPECT_EQ(second.receive().body, "slow");
  });
}

TEST(crowd, of_silent_clients_does_not_keep_others_out) {
  // As with `ulimit -n 64`: more clients than the server has descriptors, and all of them are silent.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  for (const std::size_t limit : {std::size_t{0}, std::size_t{1000}}) {  // the default limit, and practically none
    rlimit tight = before;
    tight.rlim_cur = 64;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
    child_server server({.connection_limit = limit});
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    const auto open_files = [&] {
      const std::filesystem::directory_iterator each("/proc/" + std::to_string(server.pid()) + "/fd");
      return static_cast<std::size_t>(std::distance(begin(each), end(each)));
    };
    const std::size_t at_rest = open_files();
    pirn::runtime({.workers = 1}).run([&] {
      std::vector<client> silent;
      for (int i = 0; i < 200; ++i) {
        silent.emplace_back(server.at);
      }
      const auto begin = std::chrono::steady_clock::now();
      client honest(server.at);
      EXPECT_EQ(honest.ask(get_hello).status, 200);
      EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);  // not the minute that idle connections have
      if (limit == 0) {
        EXPECT_LE(2 * open_files(), tight.rlim_cur + at_rest);  // each connection could have a file open
      }
    });
  }
}

TEST(crowd, is_spread_evenly) {
  std::mutex lock;
  std::map<std::thread::id, int> on;
  const auto count = [&](const http::request&, http::response& answer) {
    const std::lock_guard guard(lock);
    ++on[std::this_thread::get_id()];
    answer.body("counted");
  };
  with_server(count, {}, [&](running_server& running) {
    std::vector<client> clients;
    for (int i = 0; i < 100; ++i) {
      clients.emplace_back(running.at);
    }
    for (client& c : clients) {
      EXPECT_EQ(c.ask(get_hello).status, 200);
    }
    ASSERT_EQ(on.size(), 2u);
    for (const auto& [thread, connections] : on) {
      EXPECT_EQ(connections, 50);
    }
  });
}

TEST(crowd, of_requests_in_one_connection_lets_others_have_their_turns) {
  std::atomic<int> answered{0};
  const auto count = [&](const http::request&, http::response& answer) {
    ++answered;
    answer.body("counted");
  };
  with_server<1>(count, {}, [&](running_server& running) {
    constexpr int requests = 1000;  // the kernel's buffers hold the answers
    std::string many;
    for (int i = 0; i < requests; ++i) {
      many += "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    }
    client greedy(running.at);
    pirn::fiber sender = pirn::spawn([&] { greedy.send(many); });
    int most = 0;
    const auto limit = in(long_enough);
    while (answered < requests && std::chrono::steady_clock::now() < limit) {
      const int before = answered;
      pirn::this_fiber::yield();
      most = std::max(most, answered - before);
    }
    sender.join();
    EXPECT_EQ(answered, requests);
    EXPECT_LE(most, 16);
  });
}

}  // namespace
