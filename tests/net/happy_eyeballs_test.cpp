// connect_any: dead addresses, refused ones, stops, and the order of RFC 6724 in which addresses are tried.
#include "pirn/net/expert/happy_eyeballs.hpp"

#include <dirent.h>
#include <sys/socket.h>

#include "net/address_order.hpp"
#include "net/support.hpp"
#include "pirn/fiber/scope.hpp"
#include "pirn/fiber/this_fiber.hpp"

using namespace pirn;
using namespace std::chrono_literals;
using test::in;
using test::long_enough;

namespace {

/// A listener whose queue is full: connecting to it gets no answer, as with an address behind a firewall.
class dead_end {
 public:
  dead_end() : listener_(tcp_listener::listen(test::loopback(), {.backlog = 0}).value()) {
    at = listener_.local_endpoint().value();
    while (true) {
      auto filling = tcp_stream::connect(at, in(100ms));
      if (!filling) {
        break;
      }
      filling_.push_back(std::move(*filling));
    }
  }
  endpoint at;

 private:
  tcp_listener listener_;
  std::vector<tcp_stream> filling_;
};

std::size_t open_descriptors() {
  std::size_t count = 0;
  ::DIR* const all = ::opendir("/proc/self/fd");
  while (::readdir(all) != nullptr) {
    ++count;
  }
  ::closedir(all);
  return count;
}

/// An address of this machine at which no process listens.
endpoint refused() {
  auto listener = tcp_listener::listen(test::loopback()).value();
  return listener.local_endpoint().value();
}

ip_address address(std::string_view text) { return ip_address::parse(text).value(); }

}  // namespace

TEST(happy_eyeballs, the_first_that_answers_wins) {
  runtime({.workers = 1}).run([] {
    auto listener = tcp_listener::listen(test::loopback()).value();
    const endpoint good = listener.local_endpoint().value();
    const dead_end dead;
    const std::size_t before = open_descriptors();
    for (const std::vector<endpoint>& list : {std::vector<endpoint>{good},
                                              {good, dead.at},
                                              {refused(), good},
                                              {dead.at, good},
                                              {dead.at, refused(), good},
                                              std::vector<endpoint>(5, dead.at),
                                              std::vector<endpoint>(40, dead.at),
                                              std::vector<endpoint>(20, refused())}) {
      std::vector<endpoint> all = list;
      all.push_back(good);
      const auto begin = clock::now();
      const auto made = connect_any(all, {}, in(long_enough));
      const auto took = clock::now() - begin;
      ASSERT_TRUE(made) << made.error().message();
      EXPECT_EQ(made->remote_endpoint().value(), good);
      EXPECT_LT(took, 2s) << "300 ms and what the machine needs; explorations measure it in virtual time";
      EXPECT_EQ(open_descriptors(), before + 1) << "the others are closed";
    }
  });
}

TEST(happy_eyeballs, an_error_names_all_attempts) {
  runtime({.workers = 1}).run([] {
    const endpoint first = refused(), second = refused();
    const endpoint list[] = {first, second};
    const auto made = connect_any(list, {}, in(long_enough));
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error(), std::errc::connection_refused);
    EXPECT_EQ(made.error().message(),
              first.to_string() + ": Connection refused; " + second.to_string() + ": Connection refused");
    EXPECT_EQ(connect_any({}).error(), std::errc::invalid_argument);
  });
  EXPECT_EQ(connect_any({}).error(), std::errc::operation_not_permitted) << "a plain thread";
}

TEST(happy_eyeballs, a_deadline_and_a_stop_end_it) {
  runtime({.workers = 1}).run([] {
    const dead_end dead;
    const endpoint refusing = refused();
    const endpoint list[] = {refusing, dead.at};
    const std::size_t before = open_descriptors();
    const auto late = connect_any(list, {}, in(60ms));
    EXPECT_EQ(late.error(), std::errc::timed_out);
    EXPECT_EQ(late.error().attempts.front().to, refusing);
    std::error_code why;
    test::stop_while_blocked([&] { why = connect_any(list).error().code; });
    EXPECT_EQ(why, io_error::stopped);
    EXPECT_EQ(open_descriptors(), before);
  });
}

TEST(happy_eyeballs, the_families_take_turns) {
  runtime({.workers = 1}).run([] {
    // Addresses that no machine has, so the attempts fail at once, in their order.
    std::vector<endpoint> list;
    for (const char* each : {"[fe80::1%1]:1", "[fe80::2%1]:1", "[fe80::3%1]:1"}) {
      if (const auto parsed = endpoint::parse(each)) {
        list.push_back(*parsed);
      }
    }
    for (const char* each : {"255.255.255.255:1", "255.255.255.255:2"}) {
      list.push_back(endpoint::parse(each).value());
    }
    for (const bool v6_first : {true, false}) {
      const auto made = connect_any(list, {}, in(long_enough));
      ASSERT_FALSE(made);
      ASSERT_EQ(made.error().attempts.size(), list.size());
      const auto& attempts = made.error().attempts;
      for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(attempts[i].to.address.is_v6(), (i % 2 == 0) == v6_first) << made.error().message();
      }
      std::ranges::reverse(list);
    }
  });
}

TEST(happy_eyeballs, the_family_of_the_first_address_begins) {
  runtime({.workers = 1}).run([] {
    auto v4 = tcp_listener::listen(test::loopback()).value();
    auto v6 = tcp_listener::listen({ip_address::loopback_v6(), 0});
    ASSERT_TRUE(v6) << v6.error().message();
    endpoint list[] = {v4.local_endpoint().value(), v6->local_endpoint().value()};
    EXPECT_EQ(connect_any(list, {}, in(long_enough)).value().remote_endpoint(), list[0]);
    std::ranges::reverse(list);
    EXPECT_EQ(connect_any(list, {}, in(long_enough)).value().remote_endpoint(), list[0]);
  });
}

TEST(happy_eyeballs, addresses_are_ordered_as_rfc_6724_says) {
  // From section 10 of the RFC; the source is what a host with these addresses would use.
  const auto order = [](const std::vector<std::string_view>& texts, auto source) {
    std::vector<ip_address> all;
    for (const std::string_view each : texts) {
      all.push_back(address(each));
    }
    detail::order_addresses(all, source);
    std::vector<std::string> ordered;
    for (const ip_address& each : all) {
      ordered.push_back(each.to_string());
    }
    return ordered;
  };
  using texts = std::vector<std::string>;
  const auto both = [](const ip_address& to) noexcept {
    return std::optional(to.is_v6() ? address("2001:db8:1::2") : address("198.51.100.117"));
  };
  EXPECT_EQ(order({"198.51.100.121", "2001:db8:1::1"}, both), (texts{"2001:db8:1::1", "198.51.100.121"}));
  const auto link_local_v6 = [](const ip_address& to) noexcept {
    return std::optional(to.is_v6() ? address("fe80::1") : address("198.51.100.117"));
  };
  EXPECT_EQ(order({"2001:db8:1::1", "198.51.100.121"}, link_local_v6), (texts{"198.51.100.121", "2001:db8:1::1"}));
  const auto no_v6 = [](const ip_address& to) noexcept {
    return to.is_v6() ? std::nullopt : std::optional(address("10.1.2.4"));
  };
  EXPECT_EQ(order({"2001:db8:1::1", "10.1.2.3"}, no_v6), (texts{"10.1.2.3", "2001:db8:1::1"})) << "no route";
  EXPECT_EQ(order({"2001:db8:9::1", "2001:db8:1::1", "198.51.100.2", "198.51.100.1"}, both),
            (texts{"2001:db8:1::1", "2001:db8:9::1", "198.51.100.2", "198.51.100.1"}))
      << "the longest prefix; the server's order for IPv4";
  EXPECT_EQ(order({"2001:db8:1::1:1", "2001:db8:1::3"}, both), (texts{"2001:db8:1::1:1", "2001:db8:1::3"}))
      << "the server's order within a network";
  EXPECT_EQ(order({"fc00::1", "2001:db8:1::1", "2002:c633:6401::1"}, both),
            (texts{"2001:db8:1::1", "2002:c633:6401::1", "fc00::1"}))
      << "labels and precedence";
  const auto local = [](const ip_address& to) noexcept {
    return std::optional(to.is_v6() ? address("fc00::2") : address("198.51.100.117"));
  };
  EXPECT_EQ(order({"fc00::1", "198.51.100.121"}, local), (texts{"198.51.100.121", "fc00::1"})) << "precedence";
}
