// resolver: answers of dnsmasq and of servers that misbehave, the hosts file, the search list, the cache, shared
// queries.
#include "pirn/net/resolver.hpp"

#include <dlfcn.h>
#include <netdb.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "net/dns_server.hpp"
#include "net/resolver/resolv_conf.hpp"
#include "pirn/io/process.hpp"
#include "pirn/net/tcp_listener.hpp"

static std::atomic<bool> slow_calls_wait{false};

/// The C library's, but for names below "scripted".
extern "C" int getaddrinfo(const char* host, const char* service, const ::addrinfo* wanted, ::addrinfo** found) {
  using call = decltype(&::getaddrinfo);
  static const auto real = reinterpret_cast<call>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  const std::string_view name = host;
  if (name == "slow.scripted") {
    while (slow_calls_wait.load()) {
      ::usleep(1000);
    }
    return real("127.0.0.9", service, wanted, found);
  }
  if (name == "two.scripted") {
    return real("::1", service, wanted, found);
  }
  return name == "none.scripted"   ? EAI_NONAME
         : name == "bare.scripted" ? EAI_NODATA
         : name == "fail.scripted" ? EAI_AGAIN
                                   : real(host, service, wanted, found);
}

using namespace pirn;
using namespace std::chrono_literals;
using test::dns_question;
using test::in;
using test::long_enough;
using test::scripted_server;

namespace {

ip_address address(std::string_view text) { return ip_address::parse(text).value(); }

/// A folder that is removed with its files.
class folder {
 public:
  folder() { path_ = ::mkdtemp(path_.data()); }
  ~folder() { std::filesystem::remove_all(path_); }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = path_ + "/" + name;
    // A new file, as editors and DHCP clients write it.
    std::ofstream(path + ".new") << text;
    std::filesystem::rename(path + ".new", path);
    return path;
  }

 private:
  std::string path_ = "/tmp/pirn_resolver_XXXXXX";
};

/// A resolver that knows nothing of this machine's files.
resolver::options only(const endpoint& server) {
  return {.servers = {server}, .ndots = 1, .timeout = 5s, .tries = 2, .hosts_file = "", .resolv_conf = "/dev/null"};
}

/// The same, for a server that does not answer.
resolver::options briefly(const endpoint& server) {
  resolver::options how = only(server);
  how.timeout = 100ms;
  how.tries = 1;
  return how;
}

/// dnsmasq with the names of example.test, and an alias chain.
class dnsmasq {
 public:
  dnsmasq() {
    // A port that is free now; dnsmasq fails if it is taken meanwhile, and another is tried.
    for (int attempt = 0; attempt < 20; ++attempt) {
      at = udp_socket::bind(test::loopback()).value().local_endpoint().value();
      std::vector<std::string> arguments = {"/usr/sbin/dnsmasq",
                                            "--keep-in-foreground",
                                            "--conf-file=/dev/null",
                                            "--no-resolv",
                                            "--no-hosts",
                                            "--no-poll",
                                            "--bind-interfaces",
                                            "--listen-address=127.0.0.1",
                                            "--pid-file=",
                                            "--user=",
                                            "--log-facility=-",
                                            "--port=" + std::to_string(at.port),
                                            "--local=/test/",
                                            "--edns-packet-max=1232",
                                            "--host-record=both.example.test,192.0.2.1,2001:db8::1,300",
                                            "--host-record=four.example.test,192.0.2.4",
                                            "--cname=first.example.test,second.example.test,120",
                                            "--cname=second.example.test,both.example.test,60",
                                            "--srv-host=_ldap._tcp.example.test,low.example.test,389,20,0",
                                            "--srv-host=_ldap._tcp.example.test,high.example.test,636,10,5"};
      std::string text = "--txt-record=example.test";
      arguments.push_back(text + ",first part,second part");
      for (char letter = 'a'; letter < 'm'; ++letter) {  // too much for one datagram
        arguments.push_back("--txt-record=long.example.test," + std::string(200, letter));
      }
      auto started =
          process::spawn(arguments, {.output = process::source::nothing(), .error = process::source::pipe()});
      running_ = std::move(started.value());
      if (answers()) {
        return;
      }
    }
    ADD_FAILURE() << "dnsmasq does not answer";
  }

  endpoint at;

 private:
  bool answers() {
    const resolver::options asked = briefly(at);
    for (int i = 0; i < 100 && running_.wait(clock::now() + 10ms).error() == io_error::timed_out; ++i) {
      if (resolver(asked).look_up("four.example.test", in(1s))) {
        return true;
      }
    }
    return false;
  }
  process running_;
};

}  // namespace

TEST(resolver, answers_of_dnsmasq) {
  runtime({.workers = 1}).run([] {
    const dnsmasq server;
    resolver names(only(server.at));
    const auto both = names.look_up("Both.Example.Test", in(long_enough));
    ASSERT_TRUE(both) << both.error().message();
    EXPECT_EQ(both->size(), 2u);
    EXPECT_NE(std::ranges::find(*both, address("192.0.2.1")), both->end());
    EXPECT_NE(std::ranges::find(*both, address("2001:db8::1")), both->end());
    EXPECT_EQ(names.look_up("four.example.test.", in(long_enough)), std::vector{address("192.0.2.4")});
    EXPECT_EQ(names.look_up("first.example.test", in(long_enough)).value().size(), 2u) << "a chain of aliases";
    EXPECT_EQ(names.look_up("none.example.test", in(long_enough)).error(), io_error::name_not_found);
    EXPECT_EQ(names.look_up("elsewhere.example", in(long_enough)).error(), io_error::name_server_failed) << "refused";

    EXPECT_EQ(names.texts("example.test", in(long_enough)).value(), std::vector<std::string>{"first partsecond part"});
    const auto lengthy = names.texts("long.example.test", in(long_enough));
    ASSERT_TRUE(lengthy) << "truncated, then by TCP: " << lengthy.error().message();
    EXPECT_EQ(lengthy->size(), 12u);
    const std::vector<resolver::service> servers = {{"high.example.test", 636, 10, 5},
                                                    {"low.example.test", 389, 20, 0}};
    EXPECT_EQ(names.services("_ldap._tcp.example.test", in(long_enough)).value(), servers);
    EXPECT_EQ(names.texts("four.example.test", in(long_enough)).error(), io_error::no_such_record);
  });
}

TEST(resolver, a_plain_thread_looks_names_up_too) {
  runtime host({.workers = 1});
  std::optional<dnsmasq> server;
  host.run([&] { server.emplace(); });
  resolver names(only(server->at));
  EXPECT_EQ(names.look_up("four.example.test", in(long_enough)), std::vector{address("192.0.2.4")});
  EXPECT_EQ(names.connect("four.example.test", 80, in(long_enough)).error(), std::errc::operation_not_permitted);
  host.run([&] { server.reset(); });
}

TEST(resolver, literals_and_localhost_ask_no_server) {
  runtime({.workers = 1}).run([] {
    resolver names(only({ip_address::loopback_v4(), 9}));
    EXPECT_EQ(names.look_up("192.0.2.7"), std::vector{address("192.0.2.7")});
    EXPECT_EQ(names.look_up("2001:db8::7"), std::vector{address("2001:db8::7")});
    for (const char* name : {"localhost", "LocalHost.", "a.localhost"}) {
      EXPECT_EQ(names.look_up(name).value().size(), 2u) << name;
    }
    EXPECT_EQ(names.counted().queries, 0u);
  });
}

TEST(resolver, texts_that_are_no_names) {
  runtime({.workers = 1}).run([] {
    resolver names(only({ip_address::loopback_v4(), 9}));
    const std::string labels(63, 'a');
    std::string longest = labels;
    for (int i = 0; i < 3; ++i) {
      longest.append(".").append(labels);
    }
    for (const std::string& text :
         {std::string(), std::string("."), std::string(".a"), std::string("a..b"), std::string("a b"),
          std::string("a\\b"), std::string("a\0b", 3), std::string("\xc3\xa4.de"), labels + "a.test", longest}) {
      EXPECT_EQ(names.look_up(text).error(), io_error::bad_syntax) << text;
      EXPECT_EQ(names.texts(text).error(), io_error::bad_syntax) << text;
    }
    EXPECT_EQ(names.counted().queries, 0u);
  });
}

TEST(resolver, the_hosts_file_comes_first_and_may_change) {
  runtime({.workers = 1}).run([] {
    const folder files;
    scripted_server server([](const dns_question& asked) { return asked.address("192.0.2.9", ""); });
    resolver::options how = only(server.at);
    how.hosts_file =
        files.write("hosts", "192.0.2.1 here.test HERE # gone.test\n2001:db8::1 here.test\nnonsense other.test\n");
    resolver names(how);
    EXPECT_EQ(names.look_up("here.test").value().size(), 2u);
    EXPECT_EQ(names.look_up("Here").value(), std::vector{address("192.0.2.1")});
    EXPECT_EQ(server.asked.size(), 0u);
    EXPECT_EQ(names.look_up("gone.test", in(long_enough)), std::vector{address("192.0.2.9")});
    EXPECT_EQ(names.look_up("other.test", in(long_enough)), std::vector{address("192.0.2.9")});
    files.write("hosts", "192.0.2.2 here.test\n");
    EXPECT_EQ(names.look_up("here.test"), std::vector{address("192.0.2.2")});
    std::filesystem::remove(how.hosts_file);
    EXPECT_EQ(names.look_up("here.test", in(long_enough)), std::vector{address("192.0.2.9")});
  });
}

TEST(resolver, search_domains_and_dots) {
  runtime({.workers = 1}).run([] {
    std::vector<std::string> order;
    scripted_server server([&](const dns_question& asked) {
      if (asked.type == 1) {
        order.push_back(asked.name);
      }
      return asked.name == "host.two.test" || asked.name == "a.b" ? asked.address("192.0.2.2", "")
                                                                  : asked.reply(3, {}, {dns_question::soa(60, 60)});
    });
    resolver::options how = only(server.at);
    how.search = {"one.test", "two.test"};
    resolver names(how);
    EXPECT_EQ(names.look_up("host", in(long_enough)), std::vector{address("192.0.2.2")});
    EXPECT_EQ(order, (std::vector<std::string>{"host.one.test", "host.two.test"}));
    order.clear();
    EXPECT_EQ(names.look_up("a.b", in(long_enough)), std::vector{address("192.0.2.2")});
    EXPECT_EQ(names.look_up("other.", in(long_enough)).error(), io_error::name_not_found);
    EXPECT_EQ(order, (std::vector<std::string>{"a.b", "other"})) << "as it is first, and only, where a dot ends it";
    order.clear();
    EXPECT_EQ(names.look_up("none", in(long_enough)).error(), io_error::name_not_found);
    EXPECT_EQ(order, (std::vector<std::string>{"none.one.test", "none.two.test", "none"}));
  });
}

TEST(resolver, a_search_domain_that_fails_is_passed_over) {
  runtime({.workers = 1}).run([] {
    scripted_server server([](const dns_question& asked) -> std::string {
      if (asked.name.ends_with(".silent.test") && asked.type == 1) {
        return {};
      }
      if (asked.name.ends_with(".failing.test") || asked.name.ends_with(".silent.test")) {
        return asked.reply(2, {});
      }
      return asked.name == "host.good.test" || asked.name == "whole.example"
                 ? asked.address("192.0.2.2", "")
                 : asked.reply(3, {}, {dns_question::soa(60, 60)});
    });
    resolver::options how = only(server.at);
    how.ndots = 2;
    how.search = {"failing.test", "good.test"};
    resolver names(how);
    EXPECT_EQ(names.look_up("host", in(long_enough)), std::vector{address("192.0.2.2")});
    EXPECT_EQ(names.look_up("whole.example", in(long_enough)), std::vector{address("192.0.2.2")});
    EXPECT_EQ(names.look_up("none", in(long_enough)).error(), io_error::name_server_failed) << "it may be there";
    how = briefly(server.at);
    how.search = {"silent.test", "good.test"};
    EXPECT_EQ(resolver(how).look_up("host", in(long_enough)).error(), io_error::name_server_silent);
    EXPECT_EQ(server.asked["host.good.test 1"], 1) << "not after silence";
  });
}

TEST(resolver, a_changed_resolv_conf_counts_from_the_next_query) {
  runtime({.workers = 1}).run([] {
    const folder files;
    resolver::options how = only({ip_address::loopback_v4(), 9});
    how.servers.clear();
    how.ndots = 0;
    scripted_server server([](const dns_question& asked) { return asked.address("192.0.2.1", ""); });
    how.servers = {server.at};  // resolv.conf has no ports
    how.resolv_conf = files.write("resolv.conf", "search one.test\noptions ndots:2\n");
    resolver names(how);
    EXPECT_TRUE(names.look_up("a.b", in(long_enough)));
    EXPECT_EQ(server.asked.count("a.b.one.test 1"), 1u) << "fewer than two dots";
    files.write("resolv.conf", "search two.test\n");
    EXPECT_TRUE(names.look_up("c", in(long_enough)));
    EXPECT_EQ(server.asked.count("c.two.test 1"), 1u);
  });
}

TEST(resolver, timeout_and_attempts_of_resolv_conf_hold) {
  const folder files;
  using detail::patience;
  const auto read = [&](const std::string& text) { return detail::read_patience(files.write("resolv.conf", text)); };
  EXPECT_EQ(detail::read_patience("/nonexistent"), (patience{2s, 3}));
  EXPECT_EQ(read("search a.test\n# options timeout:7\noptions\toptions rotate timeout:4 attempts:2"),
            (patience{4s, 2}));
  EXPECT_EQ(read("options timeout:31 attempts:6\n"), (patience{30s, 5}));
  EXPECT_EQ(read("options timeout:0 attempts:0\n"), (patience{1s, 1}));
  EXPECT_EQ(read("options timeout:9 attempts:4\noptions timeout:8\n"), (patience{8s, 4}));
  EXPECT_EQ(read("options timeout: attempts:-1 timeout:5s\noptionstimeout:5\ntimeout:5\n"), (patience{2s, 3}));
  runtime({.workers = 1}).run([&] {
    scripted_server silent([](const dns_question&) { return std::string(); });
    resolver::options how = {.servers = {silent.at},
                             .hosts_file = "",
                             .resolv_conf = files.write("resolv.conf", "options timeout:1 attempts:1\n")};
    EXPECT_EQ(resolver(how).texts("a.test", in(long_enough)).error(), io_error::name_server_silent);
    EXPECT_EQ(silent.asked["a.test 16"], 1);
    how.timeout = 1ms;
    how.tries = 2;
    EXPECT_EQ(resolver(how).texts("b.test", in(long_enough)).error(), io_error::name_server_silent);
    EXPECT_EQ(silent.asked["b.test 16"], 2);
  });
}

TEST(resolver, answers_are_kept_for_their_time) {
  runtime({.workers = 1}).run([] {
    scripted_server server([](const dns_question& asked) -> std::string {
      if (asked.name == "short.test") {
        return asked.address("192.0.2.1", "", 1);
      }
      if (asked.name == "never.test") {
        return asked.address("192.0.2.1", "", 0);
      }
      if (asked.name == "none.test") {
        return asked.reply(3, {}, {dns_question::soa(600, 1)});
      }
      return asked.name == "failed.test" ? asked.reply(2, {}) : asked.address("192.0.2.1", "2001:db8::1", 60);
    });
    resolver names(only(server.at));
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(names.look_up("long.test", in(long_enough)));
      EXPECT_TRUE(names.look_up("short.test", in(long_enough)));
      EXPECT_TRUE(names.look_up("never.test", in(long_enough)));
      EXPECT_EQ(names.look_up("none.test", in(long_enough)).error(), io_error::name_not_found);
      EXPECT_EQ(names.look_up("failed.test", in(long_enough)).error(), io_error::name_server_failed);
    }
    EXPECT_EQ(server.asked["long.test 1"], 1);
    EXPECT_EQ(server.asked["short.test 1"], 1);
    EXPECT_EQ(server.asked["none.test 28"], 1) << "negative";
    EXPECT_EQ(server.asked["never.test 1"], 2);
    EXPECT_GE(server.asked["failed.test 1"], 2) << "a failure is not kept";
    ASSERT_TRUE(this_fiber::sleep_for(1050ms));
    EXPECT_TRUE(names.look_up("long.test", in(long_enough)));
    EXPECT_TRUE(names.look_up("short.test", in(long_enough)));
    EXPECT_FALSE(names.look_up("none.test", in(long_enough)));
    EXPECT_EQ(server.asked["long.test 1"], 1);
    EXPECT_EQ(server.asked["short.test 1"], 2);
    EXPECT_EQ(server.asked["none.test 28"], 2);
    EXPECT_GE(names.counted().cached, 8u);
  });
}

TEST(resolver, the_cache_has_a_limit) {
  runtime({.workers = 1}).run([] {
    scripted_server server([](const dns_question& asked) { return asked.address("192.0.2.1", "2001:db8::1"); });
    resolver::options how = only(server.at);
    how.max_cached = 4;  // two names
    resolver names(how);
    for (const char* name : {"a.test", "b.test", "a.test", "c.test", "a.test", "b.test"}) {
      EXPECT_TRUE(names.look_up(name, in(long_enough)));
    }
    EXPECT_EQ(server.asked["a.test 1"], 1) << "in use all the time";
    EXPECT_EQ(server.asked["b.test 1"], 2) << "not used for longest when c came";
  });
}

TEST(resolver, ten_thousand_look_ups_of_one_name_ask_once) {
  runtime({.workers = 2}).run([] {
    scripted_server server([](const dns_question& asked) {
      static_cast<void>(this_fiber::sleep_for(50ms));
      return asked.address("192.0.2.1", "");
    });
    resolver::options how = only(server.at);
    how.timeout = 10s;
    how.max_time_to_live = 0s;  // the cache takes no part
    resolver names(how);
    std::atomic<int> right = 0;
    scope all;
    for (int i = 0; i < 10'000; ++i) {
      all.spawn([&] { right += names.look_up("one.test", in(long_enough)) == std::vector{address("192.0.2.1")}; });
    }
    all.join();
    EXPECT_EQ(right, 10'000);
    EXPECT_LE(server.asked["one.test 1"], 2) << "fibers that begin after the answer ask again";
    EXPECT_GE(names.counted().shared, 19'000u);
  });
}

TEST(resolver, a_caller_that_stops_or_expires_leaves_the_others) {
  runtime({.workers = 2}).run([] {
    scripted_server server([](const dns_question& asked) {
      static_cast<void>(this_fiber::sleep_for(100ms));
      return asked.address("192.0.2.1", "");
    });
    resolver::options how = only(server.at);
    how.timeout = 10s;
    resolver names(how);
    std::error_code stopped, expired;
    fiber first = spawn([&] { stopped = names.look_up("one.test").error(); });  // it drives
    fiber second = spawn([&] { expired = names.look_up("one.test", in(30ms)).error(); });
    std::optional<result<std::vector<ip_address>>> third;
    fiber last = spawn([&] { third = names.look_up("one.test", in(long_enough)); });
    ASSERT_TRUE(this_fiber::sleep_for(10ms));
    first.request_stop();
    first.join();
    second.join();
    last.join();
    EXPECT_EQ(stopped, io_error::stopped);
    EXPECT_EQ(expired, io_error::timed_out);
    EXPECT_EQ(*third, std::vector{address("192.0.2.1")});
    EXPECT_EQ(server.asked["one.test 1"], 1);
  });
}

TEST(resolver, servers_that_misbehave) {
  runtime({.workers = 1}).run([] {
    scripted_server silent([](const dns_question&) { return std::string(); });
    scripted_server good([](const dns_question& asked) { return asked.address("192.0.2.1", ""); });
    scripted_server bad([](const dns_question& asked) -> std::string {
      std::string right = asked.address("192.0.2.1", "");
      if (asked.name == "number.test") {
        right[0] = static_cast<char>(right[0] + 1);
      } else if (asked.name == "question.test") {
        right[13] = 'x';
      } else if (asked.name == "short.test") {
        right.resize(right.size() / 2);
      } else if (asked.name == "loop.test") {
        return asked.reply(0, {dns_question::record(5, 60, "\xc0\x0c")});
      } else if (asked.name == "refused.test") {
        return asked.reply(5, {});
      } else if (asked.name == "many.test") {
        return asked.reply(0,
                           std::vector<std::string>(70, dns_question::record(1, 60, dns_question::bytes("192.0.2.2"))));
      }
      return right;
    });
    {
      resolver::options how = briefly(silent.at);
      how.servers.push_back(good.at);
      how.tries = 5;  // a machine that is busy needs more than the first
      EXPECT_EQ(resolver(how).look_up("a.test", in(long_enough)), std::vector{address("192.0.2.1")}) << "the next one";
    }
    EXPECT_EQ(resolver(briefly(silent.at)).look_up("a.test", in(long_enough)).error(), io_error::name_server_silent);
    EXPECT_EQ(resolver(only(silent.at)).look_up("a.test", in(50ms)).error(), io_error::timed_out);
    EXPECT_EQ(resolver(only({ip_address::loopback_v4(), 9})).look_up("a.test", in(long_enough)).error(),
              io_error::name_server_failed)
        << "no server there";
    resolver forged(briefly(bad.at));
    EXPECT_EQ(forged.look_up("number.test", in(long_enough)).error(), io_error::name_server_silent) << "ignored";
    EXPECT_EQ(forged.look_up("question.test", in(long_enough)).error(), io_error::name_server_silent) << "ignored";
    EXPECT_EQ(forged.look_up("short.test", in(long_enough)).error(), io_error::name_server_silent) << "ignored";
    resolver names(only(bad.at));
    EXPECT_EQ(names.look_up("loop.test", in(long_enough)).error(), io_error::no_such_record);
    EXPECT_EQ(names.look_up("refused.test", in(long_enough)).error(), io_error::name_server_failed);
    EXPECT_EQ(names.look_up("many.test", in(long_enough)).value().size(), 64u);
  });
}

TEST(resolver, queries_have_a_limit) {
  runtime({.workers = 1}).run([] {
    scripted_server silent([](const dns_question&) { return std::string(); });
    resolver::options how = only(silent.at);
    how.max_queries = 1;
    resolver names(how);
    fiber first = spawn([&] { EXPECT_EQ(names.texts("a.test").error(), io_error::stopped); });
    ASSERT_TRUE(this_fiber::sleep_for(5ms));
    EXPECT_EQ(names.texts("b.test").error(), std::errc::resource_unavailable_try_again);
    EXPECT_EQ(names.texts("a.test", in(5ms)).error(), io_error::timed_out) << "shared";
    first.request_stop();
    first.join();
    EXPECT_EQ(names.texts("b.test", in(5ms)).error(), io_error::timed_out) << "the query that nobody wants has gone";
  });
}

TEST(resolver, the_c_library_is_asked_instead) {
  const auto ask = [] {
    resolver names({.hosts_file = "", .by_system = true});
    EXPECT_EQ(names.look_up("127.0.0.7").value(), std::vector{address("127.0.0.7")});
    EXPECT_FALSE(names.look_up("localhost", in(long_enough)).value().empty());
    EXPECT_EQ(names.look_up("two.scripted", in(long_enough)).value(), std::vector{address("::1")});
    EXPECT_EQ(names.look_up("none.scripted", in(long_enough)).error(), io_error::name_not_found);
    EXPECT_EQ(names.look_up("bare.scripted", in(long_enough)).error(), io_error::no_such_record);
    EXPECT_EQ(names.look_up("fail.scripted", in(long_enough)).error(), io_error::name_server_failed);
    EXPECT_EQ(names.look_up("slow.scripted", in(long_enough)).value(), std::vector{address("127.0.0.9")});
    EXPECT_EQ(names.counted().queries, 0u);
  };
  ask();
  runtime({.workers = 1}).run([&] {
    ask();
    resolver names({.hosts_file = "", .by_system = true});
    slow_calls_wait = true;
    EXPECT_EQ(names.look_up("slow.scripted", in(5ms)).error(), io_error::timed_out);
    fiber stopped = spawn([&] { EXPECT_EQ(names.look_up("slow.scripted").error(), io_error::stopped); });
    ASSERT_TRUE(this_fiber::sleep_for(5ms));
    stopped.request_stop();
    stopped.join();
    // The calls of callers that have given up hold their threads: there is a limit.
    resolver few({.hosts_file = "", .max_queries = 2, .by_system = true});
    EXPECT_EQ(few.look_up("slow.scripted", in(5ms)).error(), io_error::timed_out);
    EXPECT_EQ(few.look_up("slow.scripted", in(5ms)).error(), io_error::timed_out);
    EXPECT_EQ(few.look_up("two.scripted", in(long_enough)).error(), std::errc::resource_unavailable_try_again);
    slow_calls_wait = false;
    while (!few.look_up("two.scripted", in(long_enough))) {
      ASSERT_TRUE(this_fiber::sleep_for(1ms));
    }
    auto listener = tcp_listener::listen({ip_address::loopback_v6(), 0});
    if (listener) {
      EXPECT_TRUE(names.connect("two.scripted", listener->local_endpoint().value().port, in(long_enough)));
    }
  });
}

TEST(resolver, connects_to_a_name) {
  runtime({.workers = 1}).run([] {
    auto listener = tcp_listener::listen(test::loopback()).value();
    const std::uint16_t port = listener.local_endpoint().value().port;
    scripted_server server([](const dns_question& asked) -> std::string {
      if (asked.name == "silent.test" && asked.type == 28) {
        return {};  // such servers exist
      }
      if (asked.name == "late.test" && asked.type == 1) {
        static_cast<void>(this_fiber::sleep_for(100ms));
      }
      if (asked.name == "dead.test") {
        return asked.address("127.0.0.1", "2001:db8::1");  // no route, or no answer
      }
      return asked.name == "none.test" ? asked.reply(3, {}) : asked.address("127.0.0.1", "");
    });
    resolver::options how = only(server.at);
    how.timeout = 10s;
    resolver names(how);
    for (const char* name : {"usual.test", "silent.test", "dead.test", "127.0.0.1"}) {
      const auto begin = clock::now();
      const auto made = names.connect(name, port, in(long_enough));
      EXPECT_TRUE(made) << name << ": " << made.error().message();
      EXPECT_LT(clock::now() - begin, 5s) << name << " waits for no second answer";
    }
    EXPECT_TRUE(names.connect("late.test", port, in(long_enough)));
    const auto none = names.connect("none.test", port, in(long_enough));
    EXPECT_EQ(none.error(), io_error::name_not_found);
    EXPECT_EQ(none.error().message(), "none.test: no host has that name");
    listener.close();
    const auto refused = names.connect("usual.test", port, in(long_enough));
    EXPECT_EQ(refused.error(), std::errc::connection_refused);
    EXPECT_EQ(refused.error().message(), "127.0.0.1:" + std::to_string(port) + ": Connection refused");
  });
}
