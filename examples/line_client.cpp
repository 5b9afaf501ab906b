// A client of a protocol of lines: sends each question as a line to a port of this machine, and prints the line that
// answers it. A connection that fails is made again, after pauses of 10 ms, 20 ms, 40 ms and so on.
//     line_client PORT QUESTION...
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "pirn/fiber/runtime.hpp"
#include "pirn/io/buffered_reader.hpp"
#include "pirn/net/tcp_stream.hpp"

namespace {

struct connection {
  pirn::tcp_stream stream;
  pirn::buffered_reader lines{stream};
};

/// Asks on a connection, and makes it if there is none. Ends it after an error: else a late answer would be taken for
/// that of the next question.
pirn::result<std::string> ask_once(std::optional<connection>& made, std::uint16_t port, const std::string& question,
                                   pirn::time_point deadline) {
  if (!made) {
    auto stream = pirn::tcp_stream::connect({pirn::ip_address::loopback_v4(), port}, deadline);
    if (!stream) {
      return pirn::fail(stream.error());
    }
    made.emplace(std::move(*stream));
  }
  const auto sent = made->stream.write(question + '\n', deadline);
  const auto answer = sent ? made->lines.read_line(1000, deadline) : pirn::fail(sent.error());
  if (!answer) {
    made.reset();
    return pirn::fail(answer.error());
  }
  return std::string(*answer);
}

}  // namespace

int main(int argc, char** argv) {
  const auto port = static_cast<std::uint16_t>(std::atoi(argc > 1 ? argv[1] : "7777"));
  pirn::runtime runtime({.workers = 1});
  runtime.run([&] {
    std::optional<connection> made;
    for (int i = 2; i < argc; ++i) {
      const pirn::time_point deadline = pirn::clock::now() + std::chrono::seconds(10);
      auto answer = ask_once(made, port, argv[i], deadline);
      for (std::chrono::milliseconds pause(10); !answer && pirn::clock::now() + pause < deadline; pause *= 2) {
        static_cast<void>(pirn::this_fiber::sleep_for(pause));
        answer = ask_once(made, port, argv[i], deadline);
      }
      std::puts(answer ? answer->c_str() : answer.error().message().c_str());
    }
  });
}
