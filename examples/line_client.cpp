// A client of a protocol of lines: sends each question as a line to a server, and prints the line that answers it. A
// connection that fails is made again, after pauses of 10 ms, 20 ms, 40 ms and so on.
//     line_client HOST PORT QUESTION...
#include <chrono>
#include <cstdio>
#include <expected>
#include <optional>
#include <string>

#include "pirn/fiber/runtime.hpp"
#include "pirn/io/buffered_reader.hpp"
#include "pirn/net/resolver.hpp"

namespace {

struct connection {
  pirn::tcp_stream stream;
  pirn::buffered_reader lines{stream};  // so a connection must not be moved
};

/// Asks on a connection, made if need be. Ends it after an error: a late answer would be that of the next question.
std::expected<std::string, std::string> ask_once(std::optional<connection>& made, const auto& connect,
                                                 const std::string& question, pirn::time_point deadline) {
  if (!made) {
    auto stream = connect(deadline);
    if (!stream) {
      return std::unexpected(stream.error().message());  // names each address that was tried
    }
    made.emplace(std::move(*stream));
  }
  const auto sent = made->stream.write(question + '\n', deadline);
  const auto answer = sent ? made->lines.read_line(1000, deadline) : pirn::fail(sent.error());
  if (!answer) {
    made.reset();
    return std::unexpected(answer.error().message());
  }
  return std::string(*answer);
}

}  // namespace

int main(int argc, char** argv) {
  const auto port = static_cast<std::uint16_t>(std::stoi(argc > 2 ? argv[2] : "7777"));
  pirn::resolver names;
  const auto connect = [&](pirn::time_point deadline) { return names.connect(argv[1], port, deadline); };
  pirn::runtime({.workers = 1}).run([&] {
    std::optional<connection> made;
    for (int i = 3; i < argc; ++i) {
      const pirn::time_point deadline = pirn::clock::now() + std::chrono::seconds(10);
      auto answer = ask_once(made, connect, argv[i], deadline);
      std::chrono::milliseconds pause(10);
      while (!answer && pirn::clock::now() + pause < deadline && pirn::this_fiber::sleep_for(pause)) {
        pause *= 2;
        answer = ask_once(made, connect, argv[i], deadline);
      }
      std::puts((answer ? *answer : answer.error()).c_str());
    }
  });
}
