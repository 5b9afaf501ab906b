// The tour: pirn's abilities, shown on real sockets in half a minute.
//
//     tour [--json] [--connections N] [--seconds S]
//
// It starts the web server example as a separate process, drives it with thousands of client fibers from this process
// (and with curl and wrk if they are installed), and reports the cost.
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "pirn/fiber/runtime.hpp"
#include "tour/child.hpp"
#include "tour/load.hpp"
#include "tour/yield_cost.hpp"

namespace {

struct report {
  tour::load_options load{{}, 2000, std::chrono::seconds(5), 1};
  tour::load_result result;
  double fiber_yield_ns = 0, thread_yield_ns = 0;
  std::string curl, wrk;  ///< their output; empty if not installed
  double wrk_rate = 0;
  std::string server;  ///< the program
  std::string failure;

  [[nodiscard]] double rate() const { return static_cast<double>(result.requests) / result.seconds; }
  [[nodiscard]] double server_kib_per_connection() const {
    return static_cast<double>(result.server_kib_during - result.server_kib_before) /
           static_cast<double>(load.connections);
  }
};

void ask_tools(report& r, const std::string& url) {
  if (tour::is_installed("curl")) {
    r.curl = tour::output_of("curl -sS -i --max-time 10 " + url + " 2>&1");
    if (r.curl.find("Hello, world!") == std::string::npos) {
      r.failure = "curl says: " + r.curl;
    }
  }
  if (tour::is_installed("wrk")) {
    r.wrk = tour::output_of("wrk -t1 -c100 -d2s --latency " + url + " 2>&1");
    const auto at = r.wrk.find("Requests/sec:");
    if (at == r.wrk.npos || r.wrk.find("Non-2xx") != r.wrk.npos) {
      r.failure = "wrk says: " + r.wrk;
    } else {
      r.wrk_rate = std::strtod(r.wrk.c_str() + at + 13, nullptr);
    }
  }
}

void run(report& r, bool talk) {
  const auto say = [&](const char* what) {
    if (talk) {
      std::printf("%s\n", what);
      std::fflush(stdout);
    }
  };
  say("Measuring a yield: ten fibers take turns, then two OS threads on one CPU ...");
  r.fiber_yield_ns = tour::min_of(tour::fiber_yield_cost);
  r.thread_yield_ns = tour::min_of(tour::thread_yield_cost);

  const unsigned cpus = std::thread::hardware_concurrency();  // those that this process may use
  r.load.workers = cpus > 1 ? cpus / 2 : 1;
  tour::server_process server(r.load.workers);
  r.server = server.program().string();
  if (!server.at()) {
    r.failure = "cannot start " + r.server + " (build the target example_web_server)";
    return;
  }
  r.load.to = *server.at();
  const std::string url = "http://" + r.load.to.to_string() + "/hello";
  say(("The web server example runs at " + url + "; " + std::to_string(r.load.connections) +
       " client fibers drive it from this process ...")
          .c_str());
  r.result = tour::drive(r.load, [&] { return server.resident_kib(); });
  if (r.result.failures > 0) {
    r.failure = std::to_string(r.result.failures) + " clients failed: " + r.result.first_failure;
  } else if (r.result.requests == 0) {
    r.failure = "no request was answered";
  }
  say("Now curl and wrk, if they are installed ...");
  ask_tools(r, url);
  if (!server.end()) {
    r.failure = "the server did not end with 0 after SIGINT";
  }
}

void print(const report& r) {
  const tour::load_result& l = r.result;
  std::printf(
      "\nRequests      %.0f/s over %zu keep-alive connections (%llu in %.1f s; client and server share this machine)\n",
      r.rate(), r.load.connections, static_cast<unsigned long long>(l.requests), l.seconds);
  std::printf("Latency       p50 %.2f ms, p99 %.2f ms, p99.9 %.2f ms\n", l.p50_us / 1e3, l.p99_us / 1e3,
              l.p999_us / 1e3);
  std::printf("Client        %zu stacks in use, %.1f KiB of memory for each fiber's stack\n", l.client_stacks,
              static_cast<double>(l.client_bytes_per_fiber) / 1024);
  std::printf("Server        %.1f KiB of memory for each connection (stack, buffers and all)\n",
              r.server_kib_per_connection());
  std::printf("Yield         %.1f ns between fibers; %.0f ns between OS threads by sched_yield: %.0f times as long\n",
              r.fiber_yield_ns, r.thread_yield_ns, r.thread_yield_ns / r.fiber_yield_ns);
  if (!r.wrk.empty()) {
    std::printf("wrk           %.0f/s over 100 connections\n", r.wrk_rate);
  }
  if (!r.curl.empty()) {
    std::printf("curl          %s\n", r.curl.substr(0, r.curl.find('\r')).c_str());
  }
  std::printf(
      "\nThe server alone: ./dev run examples/web_server.cpp --root DIR --port 8080\n             or: %s --root DIR "
      "--port 8080\n",
      r.server.c_str());
}

std::string quoted(const std::string& text) {
  std::string made = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      made += '\\';
    }
    made += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return made + '"';
}

void print_json(const report& r) {
  const tour::load_result& l = r.result;
  std::printf(
      "{\"ok\": %s, \"failure\": %s, \"connections\": %zu, \"requests\": %llu, \"seconds\": %.3f, "
      "\"requests_per_second\": %.0f, \"p50_us\": %.0f, \"p99_us\": %.0f, \"p999_us\": %.0f, \"client_stacks\": %zu, "
      "\"client_stack_bytes_per_fiber\": %zu, \"server_kib_per_connection\": %.1f, \"fiber_yield_ns\": %.2f, "
      "\"thread_yield_ns\": %.0f, \"wrk_requests_per_second\": %.0f, \"server\": %s}\n",
      r.failure.empty() ? "true" : "false", quoted(r.failure).c_str(), r.load.connections,
      static_cast<unsigned long long>(l.requests), l.seconds, l.seconds > 0 ? r.rate() : 0.0, l.p50_us, l.p99_us,
      l.p999_us, l.client_stacks, l.client_bytes_per_fiber, r.server_kib_per_connection(), r.fiber_yield_ns,
      r.thread_yield_ns, r.wrk_rate, quoted(r.server).c_str());
}

}  // namespace

int main(int argc, char** argv) try {
  report r;
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    const std::string_view value = i + 1 < argc ? argv[i + 1] : "";
    unsigned number = 0;
    const bool has_number =
        std::from_chars(value.data(), value.data() + value.size(), number).ec == std::errc{} && number > 0;
    if (name == "--json") {
      json = true;
    } else if (name == "--connections" && has_number) {
      r.load.connections = number;
      ++i;
    } else if (name == "--seconds" && has_number) {
      r.load.time = std::chrono::seconds(number);
      ++i;
    } else {
      std::fprintf(stderr, "usage: tour [--json] [--connections N] [--seconds S]\n");
      return EXIT_FAILURE;
    }
  }
  run(r, !json);
  if (json) {
    print_json(r);
  } else if (r.result.seconds > 0) {
    print(r);
  }
  if (!r.failure.empty()) {
    std::fprintf(stderr, "tour: %s\n", r.failure.c_str());
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
} catch (const std::exception& failure) {
  std::fprintf(stderr, "tour: %s\n", failure.what());
  return EXIT_FAILURE;
}
