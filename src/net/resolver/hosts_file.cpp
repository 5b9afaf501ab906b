// Implements hosts_file: lines of an address and names.
#include "net/resolver/hosts_file.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

constexpr std::size_t max_line = 4096;
constexpr std::size_t max_names = 1'000'000;  // block lists have some 100,000

}  // namespace

std::vector<ip_address> hosts_file::find(const std::string& name) {
  if (path_.empty()) {
    return {};
  }
  if (const file_stamp now = file_stamp::of(path_); now != read_at_) {
    names_.clear();
    read();
    read_at_ = now;
  }
  const auto found = names_.find(name);
  return found == names_.end() ? std::vector<ip_address>() : found->second;
}

void hosts_file::read() {
  std::ifstream file(path_);
  for (std::string line; names_.size() < max_names && std::getline(file, line);) {
    if (line.size() > max_line) {
      continue;
    }
    line.erase(std::min(line.find('#'), line.size()));
    std::ranges::transform(line, line.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    std::istringstream words(line);
    std::string word;
    if (!(words >> word)) {
      continue;
    }
    const auto address = ip_address::parse(word);
    while (address && words >> word) {
      std::vector<ip_address>& of_name = names_[word];
      if (std::ranges::find(of_name, *address) == of_name.end()) {
        of_name.push_back(*address);
      }
    }
  }
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
