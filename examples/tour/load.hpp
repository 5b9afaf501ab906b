// Thousands of client fibers that send requests to one server without pause.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pirn/fiber/runtime.hpp"
#include "pirn/net/tcp_stream.hpp"

namespace tour {

using clock = std::chrono::steady_clock;

struct load_result {
  std::uint64_t requests = 0;
  std::uint64_t failures = 0;
  std::string first_failure;
  double seconds = 0;
  double p50_us = 0, p99_us = 0, p999_us = 0;
  std::size_t client_stacks = 0;           ///< in use at once
  std::size_t client_bytes_per_fiber = 0;  ///< memory that their stacks hold
  std::size_t server_kib_before = 0, server_kib_during = 0;
};

struct load_options {
  pirn::endpoint to;
  std::size_t connections;
  std::chrono::milliseconds time;
  unsigned workers;
};

/// One client: its connection, and the duration of each of its requests.
struct client {
  std::vector<std::uint32_t> latencies_us;
  std::string failure;

  void run(const load_options& options, clock::time_point begin, clock::time_point end) {
    auto stream = pirn::tcp_stream::connect(options.to, end);
    if (!stream) {
      failure = "connect: " + stream.error().message();
      return;
    }
    // Begin all at once, when all are connected.
    static_cast<void>(pirn::this_fiber::sleep_until(begin));
    for (auto sent = clock::now(); sent < end; sent = clock::now()) {
      if (!ask(*stream)) {
        return;
      }
      const auto took = std::chrono::duration_cast<std::chrono::microseconds>(clock::now() - sent);
      latencies_us.push_back(static_cast<std::uint32_t>(took.count()));
    }
  }

 private:
  bool ask(pirn::tcp_stream& stream) {
    constexpr std::string_view request = "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n";
    constexpr std::string_view body = "\r\n\r\nHello, world!\n";
    const auto deadline = clock::now() + std::chrono::seconds(10);
    if (const auto put = stream.write(request, deadline); !put) {
      failure = "write: " + put.error().message();
      return false;
    }
    char text[1024];
    std::size_t size = 0;
    while (!std::string_view(text, size).ends_with(body)) {
      const auto got = stream.read(text + size, sizeof text - size, deadline);
      if (!got || *got == 0) {
        failure = got ? "the server ended the connection" : "read: " + got.error().message();
        return false;
      }
      size += *got;
    }
    if (!std::string_view(text, size).starts_with("HTTP/1.1 200 ")) {
      failure = "not a 200: " + std::string(text, std::min<std::size_t>(size, 40));
      return false;
    }
    return true;
  }
};

/// `look_at_server` returns the memory that the server uses, in KiB.
template <class Look>
load_result drive(const load_options& options, Look look_at_server) {
  load_result sum;
  pirn::guarded_pool stacks;
  std::vector<client> clients(options.connections);
  {
    pirn::runtime runtime({.workers = options.workers, .stacks = &stacks});
    runtime.run([&] {
      sum.server_kib_before = look_at_server();
      const auto begin = clock::now() + std::chrono::milliseconds(500);
      const auto end = begin + options.time;
      std::vector<pirn::fiber> fibers;
      fibers.reserve(clients.size());
      for (client& one : clients) {
        fibers.push_back(pirn::spawn([&] { one.run(options, begin, end); },
                                     {.name = "client", .worker = pirn::spawn_options::any_worker}));
      }
      static_cast<void>(pirn::this_fiber::sleep_until(begin + options.time / 2));
      const auto memory = stacks.statistics(pirn::stack_sampling::memory);
      sum.client_stacks = memory.in_use;
      sum.client_bytes_per_fiber = memory.resident / std::max<std::size_t>(1, memory.in_use);
      sum.server_kib_during = look_at_server();
      for (pirn::fiber& one : fibers) {
        one.join();
      }
      sum.seconds = std::chrono::duration<double>(clock::now() - begin).count();
    });
  }
  std::vector<std::uint32_t> all;
  for (const client& one : clients) {
    all.insert(all.end(), one.latencies_us.begin(), one.latencies_us.end());
    if (!one.failure.empty()) {
      ++sum.failures;
      sum.first_failure = one.failure;
    }
  }
  std::sort(all.begin(), all.end());
  const auto quantile = [&](double part) {
    return all.empty() ? 0.0 : double{all[static_cast<std::size_t>(part * static_cast<double>(all.size() - 1))] * 1.0};
  };
  sum.requests = all.size();
  sum.p50_us = quantile(0.5);
  sum.p99_us = quantile(0.99);
  sum.p999_us = quantile(0.999);
  return sum;
}

}  // namespace tour
