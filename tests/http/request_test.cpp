// The bytes that are a request: the forms of lines, targets and bodies, and their meanings.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "http/support.hpp"

namespace {

using namespace test;
namespace http = pirn::http;

/// Answers with method, target, authority, the value of Host and the body.
void echo(const http::request& asked, http::response& answer) {
  answer.body(std::string(asked.method) + " " + std::string(asked.target) + " " + std::string(asked.authority()) + " " +
              std::string(asked.find("Host").value_or("none")) + " [" + std::string(asked.body) + "]");
}

struct refusal {
  std::string what;
  std::string text;
  int status = 400;
};

/// Each is refused at once, both in one piece and byte by byte, and nothing behind it is taken for a request.
void expect_refused(const std::vector<refusal>& cases) {
  with_server<1>(echo, {.linger_timeout = 200ms}, [&](running_server& running) {
    for (const refusal& bad : cases) {
      SCOPED_TRACE(bad.what);
      client whole(running.at);
      whole.send(bad.text + std::string(get_hello));
      EXPECT_EQ(whole.receive().status, bad.status);
      EXPECT_TRUE(whole.ends_cleanly());
      client slow(running.at);
      for (const char byte : bad.text) {
        if (!slow.stream.write({&byte, 1}, in(long_enough))) {
          break;
        }
        pirn::this_fiber::yield();
      }
      EXPECT_EQ(slow.receive().status, bad.status) << "byte by byte";
      EXPECT_TRUE(slow.ends_cleanly()) << "byte by byte";
    }
  });
}

std::string get(const std::string& target, const std::string& host = "h") {
  return "GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n";
}
std::string post(const std::string& fields, const std::string& body = "") {
  return "POST / HTTP/1.1\r\nHost: h\r\n" + fields + "\r\n" + body;
}
std::string chunked(const std::string& body) { return post("Transfer-Encoding: chunked\r\n", body); }

TEST(request, a_folded_line_is_refused_in_any_field) {
  std::vector<refusal> cases;
  for (const std::string blank : {" ", "\t"}) {
    cases.push_back({"empty first line of Transfer-Encoding",
                     post("Transfer-Encoding:\r\n" + blank + "chunked\r\n", "5\r\nhello\r\n0\r\n\r\n")});
    cases.push_back({"empty first line of Content-Length", post("Content-Length:\r\n" + blank + "5\r\n", "hello")});
    cases.push_back({"empty first line of Host", "GET / HTTP/1.1\r\nHost:\r\n" + blank + "h\r\n\r\n"});
    cases.push_back({"blank first line", "GET / HTTP/1.1\r\nHost: \t\r\n" + blank + "h\r\n\r\n"});
    cases.push_back({"other field", post("X: a\r\n" + blank + "b\r\n")});
    cases.push_back({"a line of blanks", post("X: a\r\n" + blank + "\r\n")});
    cases.push_back({"behind the request line", "GET / HTTP/1.1\r\n" + blank + "X: y\r\nHost: h\r\n\r\n"});
    cases.push_back({"trailer", chunked("0\r\nX:\r\n" + blank + "y\r\n\r\n")});
  }
  expect_refused(cases);
}

TEST(request, line_ends_and_controls) {
  using namespace std::string_literals;
  std::vector<refusal> cases = {
      {"no version", "GET / \r\n\r\n"},
      {"no version and no blank", "GET /\r\n\r\n"},
      {"no target", "GET  HTTP/1.1\r\n\r\n"},
      {"nothing", " / HTTP/1.1\r\n\r\n"},
      {"two blanks", "GET /  HTTP/1.1\r\n\r\n"},
      {"blank behind the version", "GET / HTTP/1.1 \r\n\r\n"},
      {"tab for a blank", "GET\t/ HTTP/1.1\r\n\r\n"},
      {"long version", "GET / HTTP/1.11\r\n\r\n"},
      {"version of letters", "GET / HTTP/1.x\r\n\r\n"},
      {"another version", "GET / HTTP/3.0\r\n", 505},
      {"no HTTP", "GET / HTCPCP/1.0\r\n\r\n"},
      {"line feed alone", "GET / HTTP/1.1\nHost: h\r\n\r\n"},
      {"line feed alone in a field", "GET / HTTP/1.1\r\nHost: h\n\r\n\r\n"},
      {"carriage return alone", "GET / HTTP/1.1\rHost: h\r\n\r\n"},
      {"carriage return alone in a field", post("X: a\rY: b\r\n")},
      {"carriage return twice", post("X: a\r\r\n")},
      {"no name", post(": a\r\n")},
      {"blank in a name", post("X y: a\r\n")},
      {"tab behind a name", post("X\t: a\r\n")},
      {"name that is no token", post("X(y): a\r\n")},
  };
  for (const char control : "\x01\b\v\f\x1b\x7f"s + '\0') {
    const std::string name = "control " + std::to_string(static_cast<int>(control));
    cases.push_back({name + " in a value", post("X: a"s + control + "b\r\n")});
    cases.push_back({name + " before a value", post("Transfer-Encoding:"s + control + "chunked\r\n", "0\r\n\r\n")});
    cases.push_back({name + " in a name", post("X"s + control + ": a\r\n")});
    cases.push_back({name + " in a target", get("/"s + control)});
    cases.push_back({name + " in a method", "G"s + control + "T / HTTP/1.1\r\nHost: h\r\n\r\n"});
  }
  expect_refused(cases);
}

TEST(request, lengths_and_codings_that_are_refused) {
  const std::string chunk = "0\r\n\r\n";
  expect_refused({
      {"no coding", post("Transfer-Encoding:\r\n", chunk)},
      {"only blanks", post("Transfer-Encoding: \t \r\n", chunk)},
      {"behind chunked", post("Transfer-Encoding: chunked, identity\r\n", chunk)},
      {"an unknown one behind chunked", post("Transfer-Encoding: chunked, gzip\r\n", chunk)},
      {"in two lines", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", chunk)},
      {"chunked twice", post("Transfer-Encoding: chunked, chunked\r\n", chunk)},
      {"chunked twice in two lines", post("Transfer-Encoding: chunked\r\ntransfer-encoding: Chunked\r\n", chunk)},
      {"empty elements", post("Transfer-Encoding: , chunked\r\n", chunk)},
      {"an empty element at the end", post("Transfer-Encoding: chunked,\r\n", chunk)},
      {"an empty line before", post("Transfer-Encoding:\r\nTransfer-Encoding: chunked\r\n", chunk)},
      {"quoted", post("Transfer-Encoding: \"chunked\"\r\n", chunk)},
      {"chunked and a length", post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", chunk)},
      {"a length and chunked", post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", chunk)},
      {"a length and no coding", post("Content-Length: 5\r\nTransfer-Encoding:\r\n", chunk)},
      {"unknown", post("Transfer-Encoding: gzip\r\n", chunk), 501},
      {"unknown and chunked", post("Transfer-Encoding: gzip, chunked\r\n", chunk), 501},
      {"almost chunked", post("Transfer-Encoding: xchunked\r\n", chunk), 501},
      {"HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk},
      {"no length", post("Content-Length:\r\n")},
      {"a sign", post("Content-Length: +5\r\n", "hello")},
      {"hexadecimal", post("Content-Length: 0x5\r\n", "hello")},
      {"a blank within", post("Content-Length: 1 1\r\n", "hello")},
      {"a list", post("Content-Length: 5, 5\r\n", "hello")},
      {"the same twice", post("Content-Length: 5\r\nContent-Length: 5\r\n", "hello")},
      {"too long for 64 bits", post("Content-Length: 18446744073709551621\r\n", "hello")},
  });
}

TEST(request, chunks_that_are_refused) {
  using namespace std::string_literals;
  const std::string rest = "hello\r\n0\r\n\r\n";
  expect_refused({
      {"line feed in quotes", chunked("2;a=\"\nxx\"\r\n")},
      {"line end in quotes", chunked("2;a=\"\r\nxx\"\r\n")},
      {"zero in quotes", chunked("2;a=\"\0xx\"\r\n"s)},
      {"escaped line feed", chunked("2;a=\"\\\nxx\"\r\n")},
      {"escaped control", chunked("2;a=\"\\\x01xx\"\r\n")},
      {"quote that is not closed", chunked("5;a=\"x\r\n" + rest)},
      {"quote that is not closed in the last one", chunked("0;a=\"x\r\n\r\n")},
      {"behind a quote", chunked("5;a=\"x\"y\r\n" + rest)},
      {"no name", chunked("5;\r\n" + rest)},
      {"no name before a value", chunked("5;=a\r\n" + rest)},
      {"no value", chunked("5;a=\r\n" + rest)},
      {"no semicolon", chunked("5 a\r\n" + rest)},
      {"blank behind the size", chunked("5 \r\n" + rest)},
      {"blank behind a name", chunked("5;a \r\n" + rest)},
      {"blank before the size", chunked(" 5\r\n" + rest)},
      {"no size", chunked("\r\n" + rest)},
      {"no size but an extension", chunked(";a\r\n" + rest)},
      {"a sign", chunked("+5\r\n" + rest)},
      {"a prefix", chunked("0x5\r\n" + rest)},
      {"too large for 64 bits", chunked("10000000000000005\r\n" + rest)},
      {"larger than the limit", chunked("ffffffffffffffff\r\n"), 413},
      {"line feed alone", chunked("5\n" + rest)},
      {"carriage return alone", chunked("5\r" + rest)},
      {"data that is longer", chunked("4\r\n" + rest)},
      {"line feed alone behind the data", chunked("5\r\nhello\n0\r\n\r\n")},
      {"trailer without a colon", chunked("0\r\nX\r\n\r\n")},
      {"trailer with a zero", chunked("0\r\nX: \0\r\n\r\n"s)},
      {"an extension without end", chunked("5;a=" + std::string(40'000, 'a')), 431},
      {"extensions without end", chunked([] {
         std::string all;
         for (int i = 0; i < 1000; ++i) {
           all += "1;" + std::string(40, 'a') + "\r\nx\r\n";
         }
         return all;
       }()),
       431},
      {"zeros without end", chunked(std::string(40'000, '0')), 431},
      {"trailers without end",
       chunked("0\r\n" +
               [] {
                 std::string all;
                 for (int i = 0; i < 101; ++i) {
                   all += "X: y\r\n";
                 }
                 return all;
               }()),
       431},
  });
}

TEST(request, targets_that_are_refused) {
  std::vector<refusal> cases = {
      {"no path", get("x")},
      {"a query only", get("?x")},
      {"asterisk for GET", get("*")},
      {"asterisk and more", "OPTIONS *x HTTP/1.1\r\nHost: h\r\n\r\n"},
      {"authority", get("a:80")},
      {"path of OPTIONS", "OPTIONS x HTTP/1.1\r\nHost: h\r\n\r\n"},
      {"no host", get("http:///x")},
      {"no host but a port", get("http://:80/x")},
      {"no host but a query", get("http://?x")},
      {"nothing behind the scheme", get("http://")},
      {"one slash", get("http:/h/x")},
      {"another scheme", get("ftp://h/x")},
      {"no scheme", get("://h/x")},
      {"user", get("http://u@h/")},
      {"user and password", get("http://u:p@h/")},
      {"letters for a port", get("http://h:x/")},
      {"two ports", get("http://h:1:2/")},
      {"a sign of a port", get("http://h:-1/")},
      {"escape in a host", get("http://%zz/")},
      {"open bracket", get("http://[::1/")},
      {"no address in brackets", get("http://[h]/")},
      {"IPv4 in brackets", get("http://[127.0.0.1]/")},
      {"a zone", get("http://[fe80::1%25eth0]/")},
      {"behind the bracket", get("http://[::1]x/")},
      {"no Host", "GET http://h/ HTTP/1.1\r\n\r\n"},
      {"bad Host beside a host", get("http://h/", "a b")},
      {"fragment", get("/x#y")},
      {"fragment of an absolute form", get("http://h#y")},
      {"tunnel", "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", 501},
      {"tunnel in HTTP/1.0", "CONNECT a:1 HTTP/1.0\r\n\r\n", 501},
      {"tunnel without a port", "CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"tunnel with an empty port", "CONNECT a: HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"tunnel to a path", "CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"tunnel to a page", "CONNECT http://a:1/ HTTP/1.1\r\nHost: a\r\n\r\n"},
  };
  for (const char* byte : {"\"", "<", ">", "#", "\x80", "\xa0", "\xc3\xa4", "\xff"}) {
    cases.push_back({std::string("byte ") + byte, get(std::string("/") + byte)});
    cases.push_back({std::string("byte in a query ") + byte, get(std::string("/?") + byte)});
    cases.push_back({std::string("byte in a host ") + byte, get(std::string("http://h") + byte + "/")});
  }
  expect_refused(cases);
}

TEST(request, hosts_that_are_refused) {
  std::vector<refusal> cases;
  for (const char* host : {"%zz",   "%",     "a%2",   "a%2g", "a b",  "a,b c",    "u@h",    "h/x",       "h?x",
                           "h:x",   "h:1:2", "h:+1",  "[::1", "[]",   "[h]",      "[::1]x", "[1.2.3.4]", "[::1%eth0]",
                           "[v.x]", "[v1.]", "\"h\"", "<h>",  "a\\b", "\xc3\xa4", "::1"}) {
    cases.push_back({host, get("/", host)});
    cases.push_back({std::string(host) + " in HTTP/1.0", "GET / HTTP/1.0\r\nHost: " + std::string(host) + "\r\n\r\n"});
  }
  cases.push_back({"two that are the same", "GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n"});
  expect_refused(cases);
}

TEST(request, the_host_of_the_target_holds) {
  with_server<1>(echo, {.linger_timeout = 200ms}, [](running_server& running) {
    client c(running.at);
    const auto body = [&](const std::string& text) { return c.ask(text).body; };
    EXPECT_EQ(body(get("/x?y=http://z/", "a:80")), "GET /x?y=http://z/ a:80 a:80 []");
    EXPECT_EQ(body(get("http://b/echo", "a")), "GET /echo b b []");
    EXPECT_EQ(body(get("http://b.example:8080/x?y=http://z/", "a")),
              "GET /x?y=http://z/ b.example:8080 b.example:8080 []");
    EXPECT_EQ(body(get("HTTPS://B:/x", "a")), "GET /x B: B: []");
    EXPECT_EQ(body(get("http://[2001:db8::1]:1/", "")), "GET / [2001:db8::1]:1 [2001:db8::1]:1 []");
    EXPECT_EQ(body(get("http://[v7.a:b]/", "")), "GET / [v7.a:b] [v7.a:b] []");
    EXPECT_EQ(body(get("http://b", "a")), "GET / b b []");
    EXPECT_EQ(body(get("http://bcd?/a.txt", "a")), "GET /?/a.txt bcd bcd []");
    EXPECT_EQ(body(get("http://b?", "a")), "GET /? b b []");
    EXPECT_EQ(body(get("/", "")), "GET /   []");
    EXPECT_EQ(body("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"), "OPTIONS * h h []");
    EXPECT_EQ(body("OPTIONS http://b:1 HTTP/1.1\r\nHost: h\r\n\r\n"), "OPTIONS * b:1 b:1 []");
    EXPECT_EQ(body("OPTIONS http://b?x HTTP/1.1\r\nHost: h\r\n\r\n"), "OPTIONS /?x b b []");
    EXPECT_EQ(body("GET http://b/x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), "GET /x b b []");
    EXPECT_EQ(body("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), "GET /  none []");
    // Targets that browsers send, although RFC 3986 requires them to be encoded. The handler decides the meaning of a
    // "%".
    EXPECT_EQ(body(get("/a[b]|{c}^`\\%zz?100%&q=\\|{}")), "GET /a[b]|{c}^`\\%zz?100%&q=\\|{} h h []");
    // Whichever byte arrives alone, the target is complete, and occurs once.
    const std::string text = get("http://b.example?x", "a");
    for (const char byte : text) {
      c.send({&byte, 1});
      pirn::this_fiber::yield();
    }
    EXPECT_EQ(c.receive().body, "GET /?x b.example b.example []");
  });
}

TEST(request, bodies_in_chunks_of_any_form) {
  with_server<1>(echo, {.linger_timeout = 200ms}, [](running_server& running) {
    client c(running.at);
    for (const char* body : {
             "5\r\nhello\r\n0\r\n\r\n",
             "2\r\nhe\r\n003\r\nllo\r\n000\r\n\r\n",
             "5;a\r\nhello\r\n0;b=c\r\n\r\n",
             "5 ; a = b ; c=\"d;\\\"\xc3\xa4\t\\\\\"\r\nhello\r\n0\r\n\r\n",
             "5;a=\"\";b\r\nhello\r\n0\r\nX: y\r\nZ:\r\n\r\n",
             "5\t;a=b\t;c\r\nhello\r\n0\r\n\r\n",
             "1\r\nh\r\n1\r\ne\r\n1\r\nl\r\n1\r\nl\r\n1\r\no\r\n0\r\nContent-Length: 7\r\n\r\n",
         }) {
      SCOPED_TRACE(body);
      const std::string text = chunked(body);
      EXPECT_EQ(c.ask(text).body, "POST / h h [hello]");
      for (std::size_t cut = 1; cut < text.size(); ++cut) {
        c.send(text.substr(0, cut));
        pirn::this_fiber::yield();
        c.send(text.substr(cut));
        EXPECT_EQ(c.receive().body, "POST / h h [hello]") << cut;
      }
    }
    EXPECT_EQ(c.ask(post("Transfer-Encoding: \tChunKed \r\n", "A\r\n0123456789\r\n0\r\n\r\n")).body,
              "POST / h h [0123456789]");
    EXPECT_EQ(c.ask(post("Content-Length: 005\r\n", "hello")).body, "POST / h h [hello]");
    EXPECT_EQ(c.ask(post("Content-Length: 0\r\n")).body, "POST / h h []");
    // A client may send each byte as soon as it has it.
    std::string drops;
    for (int i = 0; i < 20'000; ++i) {
      drops += "1\r\nx\r\n";
    }
    EXPECT_EQ(c.ask(chunked(drops + "0\r\n\r\n")).body.size(), 20'000 + std::string("POST / h h []").size());
  });
}

TEST(request, connection_options) {
  const struct {
    int minor;
    const char* fields;
    bool stays;
  } cases[] = {
      {1, "", true},
      {1, "Connection: close\r\n", false},
      {1, "Connection: keep-alive\r\n", true},
      {1, "Connection: close, keep-alive\r\n", false},
      {1, "Connection: keep-alive\r\nConnection: CLOSE\r\n", false},
      {1, "Connection: ,x ,\tclose,\r\n", false},
      {1, "Connection: x-close\r\n", true},
      {1, "Proxy-Connection: close\r\n", true},
      {0, "", false},
      {0, "Connection: Keep-Alive\r\n", true},
      {0, "Connection: close, keep-alive\r\n", false},
      {0, "Connection: keep-alive, close\r\n", false},
      {0, "Connection: keep-alive\r\nConnection: close\r\n", false},
      {0, "Proxy-Connection: keep-alive\r\n", false},
  };
  with_server<1>(echo, {.linger_timeout = 200ms}, [&](running_server& running) {
    for (const auto& each : cases) {
      SCOPED_TRACE(std::to_string(each.minor) + " " + each.fields);
      client c(running.at);
      const std::string text = "GET / HTTP/1." + std::to_string(each.minor) + "\r\nHost: h\r\n" + each.fields + "\r\n";
      const reply got = c.ask(text);
      EXPECT_EQ(got.status, 200);
      EXPECT_EQ(got.field("Connection"), !each.stays ? "close" : each.minor == 0 ? "keep-alive" : "");
      if (each.stays) {
        EXPECT_EQ(c.ask(text).status, 200);
      } else {
        EXPECT_TRUE(c.ends_cleanly());
      }
    }
  });
  expect_refused({{"no option", "GET / HTTP/1.1\r\nHost: h\r\nConnection: a b\r\n\r\n"},
                  {"quoted option", "GET / HTTP/1.1\r\nHost: h\r\nConnection: \"close\"\r\n\r\n"}});
}

}  // namespace
