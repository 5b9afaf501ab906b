// Reads the options of resolv.conf.
#include "net/resolver/resolv_conf.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

/// Returns the number behind `name`, at least 1 and at most `most`, if the word is this option.
std::optional<unsigned> option(std::string_view word, std::string_view name, unsigned most) noexcept {
  if (!word.starts_with(name)) {
    return {};
  }
  unsigned value = 0;
  const char* const end = word.data() + word.size();
  const auto [stopped, error] = std::from_chars(word.data() + name.size(), end, value);
  return error == std::errc{} && stopped == end ? std::optional(std::clamp(value, 1U, most)) : std::nullopt;
}

}  // namespace

patience read_patience(const std::string& resolv_conf) {
  patience found;
  std::ifstream file(resolv_conf);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word) || word != "options") {
      continue;
    }
    while (words >> word) {
      if (const auto seconds = option(word, "timeout:", 30)) {
        found.timeout = std::chrono::seconds(*seconds);
      } else if (const auto tries = option(word, "attempts:", 5)) {
        found.tries = *tries;
      }
    }
  }
  return found;
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
