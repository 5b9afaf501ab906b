// Answers each request with its meaning: method, target, authority and the length of the body, a line each. Prints its
// port; ends when its standard input ends.
#include <unistd.h>

#include <cstdio>
#include <string>

#include "pirn/fiber/runtime.hpp"
#include "pirn/http/server.hpp"
#include "pirn/io/descriptor.hpp"

int main() {
  pirn::runtime runtime({.workers = 1});
  return runtime.run([] {
    auto listener = pirn::tcp_listener::listen({pirn::ip_address::loopback_v4(), 0}).value();
    std::printf("%u\n", static_cast<unsigned>(listener.local_endpoint()->port));
    std::fflush(stdout);
    pirn::http::server server([](const pirn::http::request& asked, pirn::http::response& answer) {
      std::string text;
      for (const std::string_view part : {asked.method, asked.target, asked.authority()}) {
        text.append(part).append("\n");
      }
      answer.body(text + std::to_string(asked.body.size()) + "\n");
    });
    pirn::fiber stopper = pirn::spawn([&] {
      pirn::descriptor input = pirn::descriptor::adopt(STDIN_FILENO).value();
      char byte;
      while (input.read(&byte, 1).value_or(0) > 0) {
      }
      server.stop();
    });
    return server.serve(listener) ? 0 : 1;
  });
}
