// The workload `store`: the key-value store of `callbacks` as a server, whose clients send get, set and scan over TCP.
// A set is in the log file, and on its disk as far as fdatasync says, before it is answered; sets that come while the
// log is being written go into it together.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "../callbacks/kv.hpp"

namespace bench {

/// The data in memory, and the texts of answers and of the log.
class store {
 public:
  store() {
    data_.reserve(input("KEYS"));
    for (std::uint64_t number = 0; number < input("KEYS"); ++number) {
      const std::string key(key_text{number});
      data_[key] = std::string(value_size - key.size(), '.') + key;
    }
  }

  /// Appends the answer to a get or a scan.
  void answer(const request& asked, std::string& out) const {
    const unsigned count = asked.what == kind::scan ? scan_length : 1;
    for (unsigned i = 0; i < count; ++i) {
      const key_text key(key_number(asked.key) + i);
      const std::string_view name = key;
      const auto found = data_.find(name);
      if (found != data_.end()) {
        out.append("VALUE ").append(name).append(" 0 100\r\n").append(found->second).append("\r\n");
      }
    }
    out.append("END\r\n");
  }

  /// Applies a set that is in the log.
  void apply(std::string_view key, std::string_view value, std::string& out) {
    const auto found = data_.find(key);
    if (found != data_.end()) {
      found->second.assign(value);
    }
    out.append("STORED\r\n");
  }

  static void record(const request& asked, std::string& log) {
    log.append(asked.key).append(" ").append(asked.value).append("\n");
  }

 private:
  struct hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::unordered_map<std::string, std::string, hash, std::equal_to<>> data_;
};

/// Removes the first line of `unread` that is complete, and returns it without its end; empty if there is none.
inline std::string_view take_line(std::string_view& unread) {
  const std::size_t end = unread.find("\r\n");
  if (end == std::string_view::npos) {
    return {};
  }
  const std::string_view line = unread.substr(0, end);
  unread.remove_prefix(end + 2);
  return line;
}

/// The path of the log, in the folder of the run.
inline std::string log_path() { return word_input("FOLDER") + "/log"; }

}  // namespace bench
