// A pipeline of generators: splits a text into lines, drops comments and empty lines, and numbers the rest.
#include <cstdio>
#include <string_view>
#include <utility>

#include "pirn/coro/generator.hpp"

using lines = pirn::generator<std::string_view>;

lines split(std::string_view text) {
  return [text](auto& yield) {
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t end = rest.find('\n');
      yield(rest.substr(0, end));
      rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
    }
  };
}

// Takes and yields at its own pace: two lines may become one, and one may become none.
lines without_comments(lines from) {
  return [from = std::move(from)](auto& yield) mutable {
    for (const std::string_view line : from) {
      if (const std::string_view code = line.substr(0, line.find('#')); !code.empty()) {
        yield(code);
      }
    }
  };
}

int main() {
  int number = 0;
  for (const std::string_view line : without_comments(split("first\n# nothing\nsecond # and last\n"))) {
    std::printf("%d: %.*s\n", ++number, static_cast<int>(line.size()), line.data());
  }
}
