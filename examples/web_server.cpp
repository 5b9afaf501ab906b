// A web server that serves the files of a folder, and /hello.
//     web_server [--root DIR] [--address A] [--port P] [--workers N]
#include <signal.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "pirn/fiber/runtime.hpp"
#include "pirn/http/server.hpp"
#include "pirn/http/static_files.hpp"
#include "pirn/io/signal_set.hpp"

int main(int argc, char** argv) try {
  std::string root = ".";
  pirn::endpoint at{pirn::ip_address::loopback_v4(), 8080};
  pirn::runtime_options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    const auto number = [&value](auto& into) {
      const auto parsed = std::from_chars(value.data(), value.data() + value.size(), into);
      return parsed.ec == std::errc{} && parsed.ptr == value.data() + value.size();
    };
    if (name == "--root" && !value.empty()) {
      root = value;
    } else if (const auto address = pirn::ip_address::parse(value); name == "--address" && address) {
      at.address = *address;
    } else if (!(name == "--port" && number(at.port)) && !(name == "--workers" && number(options.workers))) {
      std::fprintf(stderr, "usage: web_server [--root DIR] [--address A] [--port P (0: any)] [--workers N]\n");
      return EXIT_FAILURE;
    }
  }
  pirn::signal_set signals({SIGINT, SIGTERM});
  const pirn::http::static_files files(root);
  pirn::runtime runtime(options);
  return runtime.run([&] {
    auto listener = pirn::tcp_listener::listen(at);
    if (!listener) {
      std::fprintf(stderr, "web_server: cannot listen on %s: %s\n", at.to_string().c_str(),
                   listener.error().message().c_str());
      return EXIT_FAILURE;
    }
    std::printf("serving %s on http://%s/\n", root.c_str(), listener->local_endpoint()->to_string().c_str());
    std::fflush(stdout);
    pirn::http::server_options options;
    options.accept_failed = [](const pirn::accept_trouble& trouble) {
      std::fprintf(stderr, "web_server: %s\n", trouble.text().c_str());
    };
    options.accept_failed_every = std::chrono::seconds(5);
    const auto answer = [&](const pirn::http::request& request, pirn::http::response& response) {
      request.path() == "/hello" ? void(response.body("Hello, world!\n")) : files(request, response);
    };
    pirn::http::server server(answer, std::move(options));
    pirn::fiber stopper = pirn::spawn([&] {
      if (signals.wait()) {
        server.stop();
      }
    });
    return server.serve(*listener) ? EXIT_SUCCESS : EXIT_FAILURE;
  });
} catch (const std::exception& failure) {
  std::fprintf(stderr, "web_server: %s\n", failure.what());
  return EXIT_FAILURE;
}
