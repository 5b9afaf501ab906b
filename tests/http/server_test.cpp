// A server's answers to good and bad requests, pipelining, bodies, and the ends of connections.

#include "pirn/http/server.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "http/support.hpp"
#include "pirn/detail/platform.hpp"

namespace {

using namespace test;
namespace http = pirn::http;

/// Answers with the method, the target and the body of the request.
void echo(const http::request& asked, http::response& answer) {
  answer.body(std::string(asked.method) + " " + std::string(asked.target) + " " + std::string(asked.body));
}

TEST(server, answers_and_keeps_the_connection) {
  with_server(hello, {}, [](running_server& running) {
    client c(running.at);
    for (int i = 0; i < 3; ++i) {
      const reply got = c.ask(get_hello);
      EXPECT_EQ(got.status, 200);
      EXPECT_EQ(got.body, "Hello, world!\n");
      EXPECT_EQ(got.field("Content-Type"), "text/plain");
      EXPECT_EQ(got.field("Content-Length"), "14");
      EXPECT_EQ(got.field("Server"), "pirn");
      EXPECT_TRUE(http::parse_date(got.field("Date")));
      EXPECT_EQ(got.field("Connection"), "");
    }
    EXPECT_EQ(running.server.statistics().connections, 1u);
  });
}

TEST(server, sends_one_content_type_the_last) {
  const auto twice = [](const http::request&, http::response& answer) {
    answer.header("X-First", "1").body("x").header("content-type", "text/html").body("{}", "application/json");
  };
  with_server(twice, {}, [](running_server& running) {
    const reply got = client(running.at).ask(get_hello);
    EXPECT_EQ(got.field("Content-Type"), "application/json");
    EXPECT_EQ(got.field("content-type"), "");
    EXPECT_EQ(got.head.find("text/"), std::string::npos);
    EXPECT_EQ(got.field("X-First"), "1");
    EXPECT_EQ(got.body, "{}");
  });
}

TEST(server, refuses_a_name_that_would_split_the_head) {
  EXPECT_THROW(http::server(hello, {.name = "a\r\nSet-Cookie: b"}), std::invalid_argument);
  EXPECT_NO_THROW(http::server(hello, {.name = ""}));
}

TEST(server, ends_the_connection_when_asked_or_for_http_1_0) {
  with_server(hello, {}, [](running_server& running) {
    client asked(running.at);
    EXPECT_EQ(asked.get("/", "Connection: close\r\n").field("Connection"), "close");
    EXPECT_TRUE(asked.ends_cleanly());
    client old(running.at);
    EXPECT_EQ(old.ask("GET / HTTP/1.0\r\n\r\n").status, 200);
    EXPECT_TRUE(old.ends_cleanly());
    client older(running.at);
    EXPECT_EQ(older.ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").field("Connection"), "keep-alive");
    EXPECT_EQ(older.ask("GET / HTTP/1.0\r\n\r\n").status, 200);
  });
}

TEST(server, pipelined_requests_are_answered_in_order) {
  with_server(echo, {}, [](running_server& running) {
    client c(running.at);
    std::string all;
    constexpr int count = 500;
    for (int i = 0; i < count; ++i) {
      const std::string number = std::to_string(i);
      all += i % 3 == 0 ? "POST /" + number + " HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"
                        : "GET /" + number + " HTTP/1.1\r\nHost: h\r\n\r\n";
    }
    c.send(all);
    for (int i = 0; i < count; ++i) {
      const std::string number = std::to_string(i);
      EXPECT_EQ(c.receive().body, i % 3 == 0 ? "POST /" + number + " abc" : "GET /" + number + " ");
    }
  });
}

TEST(server, a_request_may_come_byte_by_byte) {
  with_server(echo, {}, [](running_server& running) {
    client c(running.at);
    const std::string_view text =
        "\r\nPOST /slow HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: "
        "t\r\n\r\n";
    for (int round = 0; round < 2; ++round) {
      for (const char byte : text) {
        c.send({&byte, 1});
        pirn::this_fiber::yield();
      }
      EXPECT_EQ(c.receive().body, "POST /slow abcde");
    }
  });
}

TEST(server, bodies_sized_and_chunked) {
  with_server(echo, {}, [](running_server& running) {
    client c(running.at);
    const std::string big(300'000, 'b');
    reply got = c.ask("POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 300000\r\n\r\n" + big);
    EXPECT_EQ(got.body, "POST /b " + big);
    std::string chunked = "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (int i = 0; i < 100; ++i) {
      chunked += "bb8\r\n" + big.substr(0, 3000) + "\r\n";
    }
    got = c.ask(chunked + "0\r\n\r\n");
    EXPECT_EQ(got.body, "POST /c " + big);
    got = c.ask("POST /e HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    EXPECT_EQ(got.status, 100);
    EXPECT_EQ(c.ask("ok").body, "POST /e ok");
  });
}

TEST(server, a_request_right_behind_a_full_buffer_is_seen) {
  with_server(echo, {}, [](running_server& running) {
    // The first buffer holds 4 KiB, a buffer for a body 16 KiB. Where they end, nothing signals that more input is
    // there.
    for (std::size_t total = 4096 + 16384 - 2; total <= 4096 + 16384 + 2; ++total) {
      client c(running.at);
      const std::string head = "POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: ";
      const std::size_t size = total - head.size() - 5 - 4;
      c.send(head + std::to_string(size) + "\r\n\r\n" + std::string(size, 'b') +
             "GET /next HTTP/1.1\r\nHost: h\r\n\r\n");
      EXPECT_EQ(c.receive().body.size(), std::string("POST /b ").size() + size);
      EXPECT_EQ(c.receive().body, "GET /next ") << total;
    }
  });
}

TEST(server, head_has_the_length_and_no_body) {
  with_server(hello, {}, [](running_server& running) {
    client c(running.at);
    const reply got = c.ask("HEAD /hello HTTP/1.1\r\nHost: h\r\n\r\n", false);
    EXPECT_EQ(got.status, 200);
    EXPECT_EQ(got.field("Content-Length"), "14");
    EXPECT_EQ(c.ask(get_hello).body, "Hello, world!\n");
  });
}

TEST(server, hosts_of_every_form) {
  with_server(hello, {}, [](running_server& running) {
    client c(running.at);
    for (const char* host :
         {"", "example.org", "a_b-c.d:80", "127.0.0.1:", "[::1]", "[fe80::1]:8080", "%C3%A4.example"}) {
      EXPECT_EQ(c.ask("GET / HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n").status, 200) << host;
    }
  });
}

TEST(server, a_refused_head_gets_no_body) {
  with_server(hello, {.body_limit = 10}, [](running_server& running) {
    for (const char* rest : {"/ HTTP/1.1\r\n\r\n", "/ HTTP/2.0\r\n\r\n", "/ HTTP/1.1\r\nHost: h\r\nX : y\r\n\r\n",
                             "/ HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n",
                             "/ HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n"}) {
      client c(running.at);
      EXPECT_EQ(c.ask(get_hello).status, 200);
      const reply got = c.ask("HEAD " + std::string(rest), false);
      EXPECT_GE(got.status, 400) << rest;
      EXPECT_NE(got.field("Content-Length"), "");
      EXPECT_TRUE(c.ends_cleanly()) << rest;
    }
  });
}

TEST(server, what_a_handler_throws_is_a_500) {
  const auto fail = [](const http::request& asked, http::response& answer) {
    answer.body("half done").status(201);
    if (asked.target == "/throw") {
      throw std::runtime_error("no");
    }
    if (asked.target == "/memory") {
      throw std::bad_alloc();
    }
    if (asked.target == "/number") {
      throw 1;
    }
  };
  with_server(fail, {}, [](running_server& running) {
    client c(running.at);
    for (const std::string target : {"/throw", "/memory", "/number"}) {
      // The answer to a request that arrives at the same time is not lost.
      c.send("GET /before HTTP/1.1\r\nHost: h\r\n\r\nGET " + target + " HTTP/1.1\r\nHost: h\r\n\r\n");
      EXPECT_EQ(c.receive().status, 201) << target;
      const reply got = c.receive();
      EXPECT_EQ(got.status, 500) << target;
      EXPECT_EQ(got.body, "500 Internal Server Error\n");
      EXPECT_EQ(c.get("/fine").status, 201);  // the connection continues
    }
  });
}

TEST(server, a_status_without_a_body_gets_none) {
  const auto with_body = [](const http::request& asked, http::response& answer) {
    answer.body("xx").status(std::stoi(std::string(asked.target.substr(1))));
    if (asked.find("X-File")) {
      answer.file(pirn::descriptor(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)), 0, 2);
    }
  };
  with_server(with_body, {}, [](running_server& running) {
    client c(running.at);
    for (const char* header : {"", "X-File: 1\r\n"}) {
      for (const int status : {204, 304, 205, 200}) {
        const reply got = c.get("/" + std::to_string(status), header);  // the previous answer has left nothing
        EXPECT_EQ(got.status, status);
        EXPECT_EQ(got.field("Content-Length"), status == 200 ? "2" : status == 205 ? "0" : "");
      }
    }
  });
}

TEST(server, what_would_break_the_framing_is_a_500) {
  const auto odd = [](const http::request& asked, http::response& answer) {
    answer.body("xx");
    if (asked.target.starts_with("/status/")) {
      answer.status(std::stoi(std::string(asked.target.substr(8))));
    } else {
      answer.header(asked.target.substr(1), "7");
    }
  };
  with_server(odd, {}, [](running_server& running) {
    client c(running.at);
    for (const char* target : {"/status/100", "/status/7", "/status/-99999", "/Content-Length", "/Transfer-Encoding"}) {
      const reply got = c.get(target);
      EXPECT_EQ(got.status, 500) << target;
      EXPECT_EQ(got.body, "500 Internal Server Error\n") << target;
      EXPECT_EQ(got.field("Transfer-Encoding"), "");
    }
    EXPECT_EQ(c.get("/X-Fine").body, "xx");
  });
}

struct bad_case {
  const char* what;
  std::string text;
  int status;
};

TEST(server, bad_input_gets_its_status_and_a_clean_end) {
  const std::string host = "Host: h\r\n";
  const std::vector<bad_case> cases = {
      {"no HTTP", "hello there\r\n\r\n", 400},
      {"TLS", "\x16\x03\x01\x02", 400},
      {"bad method", "G(T / HTTP/1.1\r\n\r\n", 400},
      {"space in target", "GET /a b HTTP/1.1\r\n" + host + "\r\n", 400},
      {"no version", "GET /\r\n\r\n", 400},
      {"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"HTTP/1.2", "GET / HTTP/1.2\r\n" + host + "\r\n", 505},
      {"lower case", "GET / http/1.1\r\n" + host + "\r\n", 400},
      {"no host", "GET / HTTP/1.1\r\n\r\n", 400},
      {"two hosts", "GET / HTTP/1.1\r\n" + host + host + "\r\n", 400},
      {"no name for a host", "GET / HTTP/1.1\r\nHost: a b@/\r\n\r\n", 400},
      {"user in host", "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400},
      {"path in host", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
      {"port of letters", "GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", 400},
      {"open bracket", "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", 400},
      {"behind the bracket", "GET / HTTP/1.1\r\nHost: [::1]a\r\n\r\n", 400},
      {"bad host in 1.0", "GET / HTTP/1.0\r\nHost: a b\r\n\r\n", 400},
      {"folded", "GET / HTTP/1.1\r\n" + host + "X: a\r\n b\r\n\r\n", 400},
      {"space before colon", "GET / HTTP/1.1\r\n" + host + "X : a\r\n\r\n", 400},
      {"no colon", "GET / HTTP/1.1\r\n" + host + "X\r\n\r\n", 400},
      {"zero in value", "GET / HTTP/1.1\r\n" + host + std::string("X: a\0b\r\n\r\n", 10), 400},
      {"bare newline", "GET / HTTP/1.1\n" + host + "\n", 400},
      {"bad length", "POST / HTTP/1.1\r\n" + host + "Content-Length: 1x\r\n\r\n", 400},
      {"negative length", "POST / HTTP/1.1\r\n" + host + "Content-Length: -1\r\n\r\n", 400},
      {"two lengths", "POST / HTTP/1.1\r\n" + host + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
      {"length and chunked", "POST / HTTP/1.1\r\n" + host + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
       400},
      {"unknown coding", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip\r\n\r\n", 501},
      {"chunked not last", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked, gzip\r\n\r\n", 400},
      {"chunked and more", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
      {"chunked in two lines",
       "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501},
      {"chunked with a parameter", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked;a=b\r\n\r\n0\r\n\r\n",
       501},
      {"chunked in 1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"bad chunk", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
      {"chunk without end", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n1\r\nabcdef\r\n", 400},
      {"expectation", "POST / HTTP/1.1\r\n" + host + "Expect: magic\r\nContent-Length: 1\r\n\r\n", 417},
      {"large body", "POST / HTTP/1.1\r\n" + host + "Content-Length: 1048577\r\n\r\n", 413},
      {"huge body", "POST / HTTP/1.1\r\n" + host + "Content-Length: 99999999999999999999\r\n\r\n", 400},
      {"large chunk", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n100001\r\n", 413},
      {"long target", "GET /" + std::string(20'000, 'a'), 414},
      {"long header", "GET / HTTP/1.1\r\n" + host + "X: " + std::string(20'000, 'a'), 431},
      {"many headers",
       [&] {
         std::string text = "GET / HTTP/1.1\r\n" + host;
         for (int i = 0; i < 101; ++i) {
           text += "X: y\r\n";
         }
         return text + "\r\n";
       }(),
       431},
      {"endless trailer",
       "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + std::string(40'000, 'a'), 431},
  };
  with_server(hello, {}, [&](running_server& running) {
    for (const bad_case& bad : cases) {
      SCOPED_TRACE(bad.what);
      client c(running.at);
      ASSERT_EQ(c.ask(get_hello).status, 200);
      // Input that the server does not read must not turn the end into a reset.
      c.send(bad.text + std::string(5000, 'z'));
      const reply got = c.receive();
      EXPECT_EQ(got.status, bad.status);
      EXPECT_EQ(got.field("Connection"), "close");
      EXPECT_TRUE(got.body.starts_with(std::to_string(bad.status))) << got.body;
      EXPECT_TRUE(c.ends_cleanly());
    }
  });
}

TEST(server, an_end_within_a_request_is_a_400) {
  with_server(hello, {}, [](running_server& running) {
    for (const char* text :
         {"G", "GET / HTTP/1.1\r\nHost:", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab"}) {
      client c(running.at);
      c.send(text);
      ASSERT_TRUE(c.stream.shutdown(pirn::shutdown_half::write));
      EXPECT_EQ(c.receive().status, 400);
      EXPECT_TRUE(c.ends_cleanly());
    }
    client c(running.at);
    c.send(get_hello);
    ASSERT_TRUE(c.stream.shutdown(pirn::shutdown_half::write));
    EXPECT_EQ(c.receive().status, 200);  // a half-closed client still gets its answer
    EXPECT_TRUE(c.ends_cleanly());
  });
}

TEST(server, survives_noise) {
  with_server(echo, {.body_limit = 10'000}, [](running_server& running) {
    const std::string_view seeds[] = {
        "GET /hello?x=1 HTTP/1.1\r\nHost: h\r\nConnection: keep-alive\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\nT: u\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n0123456789",
    };
    pirn::platform::random random(42);
    for (int round = 0; round < 300; ++round) {
      std::string text;
      for (int part = 0; part < 3; ++part) {
        text += seeds[random.next() % 3];
      }
      const auto changes = random.next() % 8;
      for (std::uint64_t i = 0; i < changes; ++i) {
        const std::size_t at = random.next() % text.size();
        switch (random.next() % 4) {
          case 0:
            text[at] = static_cast<char>(random.next());
            break;
          case 1:
            text.erase(at, random.next() % 10);
            break;
          case 2:
            text.insert(at, 1 + random.next() % 5, "\r\n:0 \x80"[random.next() % 6]);
            break;
          default:
            text = text.substr(0, at + 1) + text.substr(random.next() % text.size());
            break;
        }
      }
      client c(running.at);
      static_cast<void>(c.stream.write(text, in(long_enough)));
      static_cast<void>(c.stream.shutdown(pirn::shutdown_half::write));
      int status = 1;
      while (status > 0) {
        status = c.receive().status;
        EXPECT_TRUE(status < 500 || status == 501 || status == 505) << status << " for " << text;
      }
      EXPECT_EQ(status, 0) << "reset after " << text;
    }
    client c(running.at);
    EXPECT_EQ(c.get("/alive").body, "GET /alive ");
  });
}

TEST(server, a_listener_of_no_use_is_an_error) {
  pirn::runtime({.workers = 1}).run([] {
    pirn::tcp_listener none;
    http::server server(hello);
    EXPECT_EQ(server.serve(none).error(), pirn::io_error::closed);
  });
}

}  // namespace
