// The clients of the workload `client`, against peers that send the text of a test in the pieces of that test. Compiled
// by the plugin where there is one, which must not change their behaviour.
#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "bench/client/http_client.hpp"
#include "bench/client/rpc_client.hpp"

namespace {

using bench::bytes;
using bench::client_error;
using bench::connection;
using bench::frame_header;

std::string_view text_of(bytes of) { return {reinterpret_cast<const char*>(of.data()), of.size()}; }
bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

void run(std::vector<std::function<void()>> bodies) { bench::loop.run(std::move(bodies), 65536); }

/// Sends pieces one by one.
class sender : public bench::peer {
 public:
  void answer(connection& to) override {
    if (next_ < pieces_.size()) {
      to.answer(bytes_of(pieces_[next_++]));
    }
    if (next_ == pieces_.size() && closes) {
      to.close();
    }
  }

  bool closes = false;  ///< with the last piece

 protected:
  ~sender() = default;
  std::size_t send(const std::vector<std::string>& pieces) {
    pieces_.insert(pieces_.end(), pieces.begin(), pieces.end());
    return pieces.size();
  }

 private:
  std::deque<std::string> pieces_;
  std::size_t next_ = 0;
};

/// Answers each request with the next of its scripts. Closes when there are no more.
class scripted final : public sender {
 public:
  explicit scripted(std::vector<std::vector<std::string>> scripts) : scripts_(std::move(scripts)) {}

  std::size_t take(bytes part) override {
    requests += text_of(part);
    if (script_ == scripts_.size()) {
      closes = true;
      return 1;
    }
    return send(scripts_[script_++]);
  }

  std::string requests;

 private:
  std::vector<std::vector<std::string>> scripts_;
  std::size_t script_ = 0;
};

struct got {
  std::expected<bench::http_response, client_error> response = std::unexpected(client_error::closed);
  std::string body;
};

/// Returns the results of `requests` requests on one connection.
std::vector<got> get(scripted& from, std::size_t requests = 1, std::string_view target = "/x") {
  std::vector<got> all(requests);
  run({[&] {
    connection line(from);
    bench::http_client client(line);
    for (got& each : all) {
      each.response = client.get(target, [&](bytes part) { each.body += text_of(part); });
    }
  }});
  return all;
}

/// Returns the text in two pieces, cut at each place, and in pieces of one byte.
std::vector<std::vector<std::string>> cut(const std::string& text) {
  std::vector<std::vector<std::string>> all;
  for (std::size_t at = 1; at < text.size(); ++at) {
    all.push_back({text.substr(0, at), text.substr(at)});
  }
  std::vector<std::string>& single = all.emplace_back();
  for (const char each : text) {
    single.emplace_back(1, each);
  }
  return all;
}

TEST(client_http, asks_for_the_target) {
  scripted peer({{"HTTP/1.1 204 No Content\r\n\r\n"}});
  const got answer = get(peer)[0];
  ASSERT_TRUE(answer.response);
  EXPECT_EQ(answer.response->status, 204u);
  EXPECT_TRUE(answer.response->keep_alive);
  EXPECT_TRUE(peer.requests.starts_with("GET /x HTTP/1.1\r\nHost: ")) << peer.requests;
  EXPECT_TRUE(peer.requests.ends_with("\r\n\r\n"));
}

TEST(client_http, reads_an_answer_however_it_is_cut) {
  for (const auto& pieces : cut("HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: 5\r\n\r\nhello")) {
    scripted peer({pieces, {"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno"}});
    const std::vector<got> answers = get(peer, 2);
    ASSERT_TRUE(answers[0].response) << pieces[0];
    EXPECT_EQ(answers[0].response->status, 200u);
    EXPECT_EQ(answers[0].response->body_size, 5u);
    EXPECT_EQ(answers[0].body, "hello");
    ASSERT_TRUE(answers[1].response) << pieces[0];
    EXPECT_EQ(answers[1].response->status, 404u);
    EXPECT_FALSE(answers[1].response->keep_alive);
    EXPECT_EQ(answers[1].body, "no");
  }
}

TEST(client_http, reads_chunks_however_they_are_cut) {
  const std::string header = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (auto pieces : cut("3;a=b\r\nabc\r\n1\r\nd\r\n0\r\n\r\n")) {
    pieces.insert(pieces.begin(), header);
    scripted peer({pieces, {header + "2\r\nxy\r\n0\r\n\r\n"}});
    const std::vector<got> answers = get(peer, 2);
    ASSERT_TRUE(answers[0].response) << pieces[1];
    EXPECT_EQ(answers[0].body, "abcd");
    EXPECT_EQ(answers[0].response->body_size, 4u);
    ASSERT_TRUE(answers[1].response) << pieces[1];
    EXPECT_EQ(answers[1].body, "xy");
  }
}

TEST(client_http, two_answers_may_come_in_one_segment) {
  const std::string one = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n";
  scripted peer({{one + "a" + one + "b"}, {one + "c"}});
  const std::vector<got> answers = get(peer, 3);
  EXPECT_EQ(answers[0].body, "a");
  EXPECT_EQ(answers[1].body, "b");
  EXPECT_EQ(answers[2].body, "c");
}

TEST(client_http, a_body_may_end_with_the_stream) {
  scripted peer({std::vector<std::string>{"HTTP/1.1 200 OK\r\n\r\nall", " of it"}});
  peer.closes = true;
  const got answer = get(peer)[0];
  ASSERT_TRUE(answer.response);
  EXPECT_EQ(answer.body, "all of it");
  EXPECT_FALSE(answer.response->keep_alive);
}

TEST(client_http, says_why_there_is_no_answer) {
  const auto error_of = [](const std::vector<std::string>& pieces) {
    scripted peer({pieces});
    peer.closes = true;
    const got answer = get(peer)[0];
    return answer.response ? std::nullopt : std::optional(answer.response.error());
  };
  EXPECT_EQ(error_of({"HTTP/1.1 2x0 OK\r\n\r\n"}), client_error::malformed);
  EXPECT_EQ(error_of({"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"}), client_error::malformed);
  EXPECT_EQ(error_of({"HTTP/1.1 200 OK\r\nContent-Le"}), client_error::closed);
  EXPECT_EQ(error_of({"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"}), client_error::closed);
  EXPECT_EQ(error_of({"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"}), client_error::closed);
  EXPECT_EQ(error_of({"HTTP/1.1 200 OK\r\nA: " + std::string(10'000, 'a') + "\r\n\r\n"}), client_error::too_long);
  EXPECT_EQ(error_of(std::vector<std::string>(200, "HTTP/1.1 200 OK\r\nA: " + std::string(100, 'a'))),
            client_error::too_long);

  scripted gone({});
  EXPECT_EQ(get(gone)[0].response.error(), client_error::closed);
  scripted unasked({{"HTTP/1.1 204 No Content\r\n\r\n"}});
  EXPECT_EQ(get(unasked, 1, std::string(2000, '/'))[0].response.error(), client_error::too_long);
  EXPECT_EQ(unasked.requests, "");
}

TEST(client_transport, hands_over_pages_of_the_peers_memory) {
  const std::string header = "HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n";
  const std::string body(10'000, 'x');
  scripted peer({{header, body}});
  std::vector<std::size_t> sizes;
  run({[&] {
    connection line(peer);
    bench::http_client client(line);
    EXPECT_TRUE(client.get("/", [&](bytes part) { sizes.push_back(part.size()); }));
  }});
  EXPECT_EQ(sizes, (std::vector<std::size_t>{4096, 4096, 1808}));
}

/// Answers a group of calls at once, each with its own argument, in a given order and in pieces of one size.
class rpc_peer final : public sender {
 public:
  rpc_peer(std::vector<std::size_t> order, std::size_t piece) : order_(std::move(order)), piece_(piece) {}

  std::size_t take(bytes part) override {
    if (std::exchange(header_next_, !header_next_)) {
      EXPECT_EQ(part.size(), sizeof header_);
      std::memcpy(&header_, part.data(), sizeof header_);
      EXPECT_EQ(header_.magic, frame_header::right_magic);
      return 0;
    }
    EXPECT_EQ(header_.size, part.size());
    frame_header answer = {.status = header_.method, .id = header_.id, .size = part.size()};
    if (spoil) {
      spoil(answer);
    }
    calls_.push_back(std::string(text_of(std::as_bytes(std::span(&answer, 1)))).append(text_of(part)));
    if (calls_.size() != order_.size()) {
      return 0;
    }
    std::string stream;
    for (const std::size_t each : order_) {
      stream += calls_[each];
    }
    calls_.clear();
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < stream.size(); at += piece_) {
      pieces.push_back(stream.substr(at, piece_));
    }
    return send(pieces);
  }

  std::function<void(frame_header&)> spoil;

 private:
  std::vector<std::size_t> order_;
  std::size_t piece_;
  frame_header header_;
  bool header_next_ = true;
  std::vector<std::string> calls_;
};

/// Returns the results of each fiber's calls: their arguments, or the first error.
std::vector<std::expected<std::string, client_error>> call(bench::peer& from, std::size_t fibers, std::size_t calls) {
  connection line(from);
  bench::rpc_client client(line);
  std::vector<std::expected<std::string, client_error>> all(fibers);
  std::vector<std::function<void()>> bodies;
  for (std::size_t i = 0; i < fibers; ++i) {
    bodies.emplace_back([&, i] {
      for (std::size_t turn = 0; turn < calls && all[i]; ++turn) {
        const std::string argument = "call " + std::to_string(turn) + " of fiber " + std::to_string(i) + ";";
        std::string payload;
        const auto answer = client.call(static_cast<std::uint16_t>(i), bytes_of(argument),
                                        [&](bytes part) { payload += text_of(part); });
        if (!answer) {
          all[i] = std::unexpected(answer.error());
        } else {
          EXPECT_EQ(answer->status, i);
          EXPECT_EQ(answer->size, argument.size());
          EXPECT_EQ(payload, argument);
          all[i]->append(payload);
        }
      }
    });
  }
  run(std::move(bodies));
  return all;
}

TEST(client_rpc, each_call_gets_its_own_answer_in_any_order_and_however_it_is_cut) {
  for (const std::vector<std::size_t>& order :
       {std::vector<std::size_t>{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}, {2, 0, 3, 1}}) {
    for (const std::size_t piece : {1, 5, 23, 24, 25, 40, 4096}) {
      rpc_peer peer(order, piece);
      for (const auto& each : call(peer, order.size(), 5)) {
        ASSERT_TRUE(each) << "pieces of " << piece;
        EXPECT_TRUE(each->starts_with("call 0 of") && each->find("call 4 of") != std::string::npos);
      }
    }
  }
}

TEST(client_rpc, a_stream_that_makes_no_sense_fails_every_call) {
  const auto errors_of = [](const std::function<void(frame_header&)>& spoil, bool closes = false) {
    rpc_peer peer({0, 1, 2}, 30);
    peer.spoil = spoil;
    peer.closes = closes;
    std::vector<std::optional<client_error>> all;
    for (const auto& each : call(peer, 3, 2)) {
      all.push_back(each ? std::nullopt : std::optional(each.error()));
    }
    return all;
  };
  const auto everybody = [](client_error why) { return std::vector<std::optional<client_error>>(3, why); };
  EXPECT_EQ(errors_of([](frame_header& of) { of.magic = 0; }), everybody(client_error::malformed));
  EXPECT_EQ(errors_of([](frame_header& of) { of.id += 64; }), everybody(client_error::unknown_id));
  EXPECT_EQ(errors_of([](frame_header& of) { of.id = 1'000'007; }), everybody(client_error::unknown_id));
  EXPECT_EQ(errors_of([first = std::uint64_t{0}](frame_header& of) mutable {
              of.id = first == 0 ? (first = of.id) : first;
            })[2],
            client_error::unknown_id);
  EXPECT_EQ(errors_of([](frame_header& of) { of.size += 1000; }, true)[0], client_error::closed);
}

TEST(client_fibers, take_turns_and_wait_for_each_other) {
  std::string order;
  bench::turns lock;
  bench::signal told;
  const auto body = [&](char name) {
    return [&, name] {
      lock.enter();
      order += name;
      bench::loop.yield();
      order += name;
      lock.leave();
    };
  };
  run({body('a'), body('b'),
       [&] {
         told.wait();
         order += "told";
       },
       body('c'),
       [&] {
         lock.enter();
         EXPECT_TRUE(told.has_waiter());
         told.raise();
         EXPECT_FALSE(told.has_waiter());
         told.raise();
         lock.leave();
       }});
  EXPECT_EQ(order, "aabbcctold");
}

}  // namespace
