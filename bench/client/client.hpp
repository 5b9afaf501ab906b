// Shared by the programs of `client`: the clients, their network and servers, the checks and the rows.
//
// Fibers of one core, several to a connection, each request one answer after the other. By HTTP one fiber at a time
// uses a connection; by RPC requests of all are under way. They check each answer by the addresses of its parts, which
// touches none of it, and before the time starts by its checksum too. After Li and others, "Stackful Coroutine Made
// Fast", whose answers are of 1 MB.
#pragma once

#include "http_client.hpp"
#include "rpc_client.hpp"
#include "servers.hpp"

namespace bench {
namespace {

/// How bodies are checked: by their addresses or by their bytes.
enum class looks : std::uint8_t { at_places, at_bytes };

/// Checks that the parts of an answer are the content, from its beginning to its end.
class answer_check {
 public:
  answer_check(const content& of, looks how) : content_(of.whole()), next_(content_.data()), how_(how) {}
  void operator()(bytes part) {
    check(part.data() == next_, "parts of an answer come in order and were not copied");
    next_ += part.size();
    if (how_ == looks::at_bytes) {
      sum_ = checksum(part, sum_);
    }
  }
  void at_end() const {
    check(next_ == content_.data() + content_.size(), "an answer comes whole");
    check(how_ == looks::at_places || sum_ == checksum(content_), "an answer is the content");
  }

 private:
  bytes content_;
  const std::byte* next_;
  looks how_;
  std::uint64_t sum_ = checksum({});
};

void ask_http(http_client& client, const content& expected, std::uint64_t requests, looks how) {
  for (std::uint64_t i = 0; i < requests; ++i) {
    answer_check body(expected, how);
    const auto response = client.get("/volumes/1/blocks/42", body);
    check(response && response->status == 200 && response->keep_alive, "a request succeeds");
    body.at_end();
  }
}

void ask_rpc(rpc_client& client, std::uint16_t method, const content& expected, std::uint64_t requests, looks how) {
  struct {
    std::uint64_t volume;
    std::uint64_t block;
  } argument = {1, 0};
  for (std::uint64_t i = 0; i < requests; ++i) {
    argument.block = i;
    answer_check payload(expected, how);
    const auto answer = client.call(method, std::as_bytes(std::span(&argument, 1)), payload);
    check(answer && answer->status == method, "the answer is that of the call");
    payload.at_end();
  }
}

struct http_side {
  explicit http_side(const content& of) : server(of), line(server), client(line) {}
  http_server server;
  connection line;
  http_client client;
};
struct rpc_side {
  explicit rpc_side(const content& of) : server(of), line(server), client(line) {}
  rpc_server server;
  connection line;
  rpc_client client;
};

/// The number of fibers that share a connection.
constexpr std::size_t sharers = 8;

template <typename Side, typename Ask>
void client_row(const char* impl, const char* protocol, std::size_t size, Ask&& ask, const char* note) {
  const std::uint64_t fibers = input("CLIENTS");
  const content expected(size);
  std::vector<std::unique_ptr<Side>> sides;
  for (std::size_t i = 0; i < fibers; i += sharers) {
    sides.push_back(std::make_unique<Side>(expected));
  }
  const auto run = [&](std::uint64_t each, looks how) {
    std::vector<std::function<void()>> bodies;
    for (std::size_t i = 0; i < fibers; ++i) {
      bodies.emplace_back([&, i] { ask(*sides[i / sharers], i, expected, each, how); });
    }
    loop.run(std::move(bodies), input("STACK"));
  };
  run(1, looks::at_bytes);
  const double ns = ns_per_operation([&](std::uint64_t n) { run(n / fibers, looks::at_places); }, fibers);
  row("client", impl, R"({"protocol":")" + std::string(protocol) + R"(","bytes":)" + std::to_string(size) + "}", "ns",
      ns, note);
}

/// Prints the rows of one implementation, per request.
void client_rows(const char* impl, const char* note = nullptr) {
  for (const std::size_t size : {std::size_t{1} << 20, std::size_t{100}}) {
    client_row<http_side>(
        impl, "http", size,
        [](http_side& side, std::size_t, const content& expected, std::uint64_t requests, looks how) {
          ask_http(side.client, expected, requests, how);
        },
        note);
    client_row<rpc_side>(
        impl, "rpc", size,
        [](rpc_side& side, std::size_t i, const content& expected, std::uint64_t requests, looks how) {
          ask_rpc(side.client, static_cast<std::uint16_t>(i), expected, requests, how);
        },
        note);
  }
}

}  // namespace
}  // namespace bench
