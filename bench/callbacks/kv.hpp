// Shared by the programs of callbacks: a key-value store in memory that speaks memcached's text protocol, the event
// loop, the measurement and its checks.
//
// Every page is first looked up in a simulated asynchronous storage, so that a request waits at least once: get once,
// set twice (for the page and for the log), scan for each of its keys. At any time as many requests are under way as
// the limit allows.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "../harness.hpp"

namespace bench {

/// Completes its operations later, one by one, in the order of their submission, by `waiter.complete(error)`: it calls
/// a callback, or resumes a coroutine.
template <typename Waiter>
class storage {
 public:
  void submit(Waiter& waiter) { pending_[last_++ % pending_.size()] = &waiter; }
  [[gnu::always_inline]] void complete_one() {
    Waiter& oldest = *pending_[first_++ % pending_.size()];
    oldest.complete(0);
  }

 private:
  std::array<Waiter*, 256> pending_ = {};
  std::uint64_t first_ = 0;
  std::uint64_t last_ = 0;
};

/// How many keys a scan visits.
inline constexpr std::uint64_t usual_stack = 65536;
inline constexpr unsigned scan_length = 4;
inline constexpr std::size_t value_size = 100;
using value_text = std::array<char, value_size>;

/// A key as text: k and seven digits.
class key_text {
 public:
  explicit key_text(std::uint64_t number) {
    for (std::size_t i = text_.size() - 1; i > 0; --i, number /= 10) {
      text_[i] = static_cast<char>('0' + number % 10);
    }
  }
  operator std::string_view() const { return {text_.data(), text_.size()}; }

 private:
  std::array<char, 8> text_ = {'k'};
};

inline std::uint64_t key_number(std::string_view key) {
  std::uint64_t number = 0;
  std::from_chars(key.data() + 1, key.data() + key.size(), number);
  return number;
}

struct entry {
  std::uint64_t version = 0;
  value_text value = {};
};

enum class kind : std::uint8_t { get, set, scan };

/// A parsed request; the texts are parts of the input.
struct request {
  kind what = kind::get;
  std::string_view key;
  std::string_view value;
};

/// The input: requests one after the other, made in advance.
class incoming {
 public:
  explicit incoming(std::uint64_t keys) {
    std::uint64_t random = 88172645463325252U;  // xorshift64, Marsaglia 2003
    for (std::size_t i = 0; i < count; ++i) {
      random ^= random << 13;
      random ^= random >> 7;
      random ^= random << 17;
      const std::uint64_t percent = random % 100;
      const std::uint64_t number = (random >> 32) % (keys - scan_length);
      const std::string key(key_text{number});
      if (percent < 80) {
        text_ += "get " + key + "\r\n";
      } else if (percent < 95) {
        // A value names its key, whichever request wrote it last.
        text_ += "set " + key + " " + std::string(value_size - key.size(), '.') + key + "\r\n";
        ++sets_;
      } else {
        text_ += "scan " + key + "\r\n";
      }
      numbers_ += percent < 95 ? number : scan_length * number + scan_length * (scan_length - 1) / 2;
    }
  }

  /// The next line.
  [[nodiscard]] std::string_view next() {
    const std::size_t begin = position_;
    const std::size_t end = text_.find('\r', begin);
    position_ = end + 2 == text_.size() ? 0 : end + 2;
    return std::string_view(text_).substr(begin, end - begin);
  }

  static constexpr std::size_t count = 50'000;
  /// The sum of the answers to all of them, and the number of sets.
  [[nodiscard]] std::uint64_t numbers() const { return numbers_; }
  [[nodiscard]] std::uint64_t sets() const { return sets_; }

 private:
  std::string text_;
  std::size_t position_ = 0;
  std::uint64_t numbers_ = 0;
  std::uint64_t sets_ = 0;
};

inline request parse(std::string_view line) {
  const std::size_t space = line.find(' ');
  const std::string_view command = line.substr(0, space);
  const std::string_view rest = line.substr(space + 1);
  if (command == "get") {
    return {kind::get, rest, {}};
  }
  if (command == "set") {
    return {kind::set, rest.substr(0, rest.find(' ')), rest.substr(rest.find(' ') + 1)};
  }
  check(command == "scan", "a request is one that we know");
  return {kind::scan, rest, {}};
}

/// The server: its loop, and the parts of requests.
template <typename Waiter>
class server {
 public:
  server() : incoming_(input("KEYS")) {
    data_.reserve(input("KEYS"));
    for (std::uint64_t number = 0; number < input("KEYS"); ++number) {
      const key_text key(number);
      entry& made = data_[std::string(key)];
      made.value.fill('.');
      std::memcpy(made.value.end() - std::string_view(key).size(), std::string_view(key).data(),
                  std::string_view(key).size());
    }
  }

  storage<Waiter> disk;

  // The steps of a request between two waits.
  [[nodiscard]] const entry& read(std::string_view key) const {
    const auto found = data_.find(key);
    check(found != data_.end(), "the key is there");
    return found->second;
  }
  void write(std::string_view key, std::string_view value) {
    const auto found = data_.find(key);
    check(found != data_.end() && value.size() == value_size, "the key is there and the value complete");
    ++found->second.version;
    std::memcpy(found->second.value.data(), value.data(), value_size);
  }
  static void look_at(int error) { check(error == 0, "the storage does not fail"); }

  // The answers.
  void answer_value(std::string_view key, const entry& found) {
    char* out = room(64 + value_size);
    out = put(out, "VALUE ");
    out = put(out, key);
    out = put(out, " 0 ");
    out = std::to_chars(out, out + 20, value_size).ptr;
    out = put(out, "\r\n");
    out = put(out, {found.value.data(), value_size});
    out = put(out, "\r\n");
    written_ = static_cast<std::size_t>(out - output_.data());
    answered_ += key_number({found.value.end() - key.size(), key.size()});
  }
  void answer_end() {
    written_ = static_cast<std::size_t>(put(room(64), "END\r\n") - output_.data());
    end();
  }
  void answer_stored(std::string_view key) {
    written_ = static_cast<std::size_t>(put(room(64), "STORED\r\n") - output_.data());
    answered_ += key_number(key);
    end();
  }

  /// Returns the next request, which counts as under way from now on; empty after the last one or at the limit.
  [[nodiscard]] std::string_view next() {
    if (left_ == 0 || under_way_ == limit_) {
      return {};
    }
    --left_;
    ++under_way_;
    return incoming_.next();
  }

  /// Serves `n` requests: `begin(line)` starts a request and returns at its first wait. An object that
  /// has served a request may also take the `next` one.
  template <typename Begin>
  void run(std::uint64_t n, Begin&& begin) {
    const std::uint64_t ended_before = ended_;
    left_ = n;
    do {
      for (std::string_view line = next(); !line.empty(); line = next()) {
        begin(line);
      }
      disk.complete_one();
    } while (left_ != 0 || under_way_ != 0);
    check(ended_ - ended_before == n, "every request is answered once");
  }

  /// Must be called after whole rounds of all the requests.
  void check_answers() const {
    const std::uint64_t rounds = ended_ / incoming::count;
    check(ended_ == rounds * incoming::count && answered_ == rounds * incoming_.numbers(),
          "answers belong to their keys");
  }
  void check_sets() const {
    std::uint64_t versions = 0;
    for (const auto& [key, found] : data_) {
      versions += found.version;
    }
    check(versions == ended_ / incoming::count * incoming_.sets(), "every set is applied once");
  }

 private:
  struct hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  /// Returns the place of the next answer; a full buffer counts as sent.
  char* room(std::size_t size) {
    if (written_ + size > output_.size()) {
      written_ = 0;
    }
    return output_.data() + written_;
  }
  static char* put(char* to, std::string_view text) {
    std::memcpy(to, text.data(), text.size());
    return to + text.size();
  }
  void end() {
    --under_way_;
    ++ended_;
  }

  std::unordered_map<std::string, entry, hash, std::equal_to<>> data_;
  incoming incoming_;
  std::uint64_t limit_ = input("UNDER_WAY");
  std::uint64_t left_ = 0;
  std::uint64_t under_way_ = 0;
  std::uint64_t ended_ = 0;
  std::uint64_t answered_ = 0;
  std::size_t written_ = 0;
  std::array<char, 65536> output_ = {};
};

/// Prints the rows of one implementation, in requests per second: in the steady state, and for the first thousand of
/// the process, for which nothing has been allocated yet.
template <typename Waiter, typename Begin>
void callbacks_rows(const char* impl, server<Waiter>& of, Begin&& begin, const char* note = nullptr) {
  constexpr std::uint64_t first = 1000;
  const double start = now_ns();
  of.run(first, begin);
  const double warming_up = (now_ns() - start) / first;
  of.run(incoming::count - first, begin);
  const double steady = ns_per_operation(
      [&](std::uint64_t n) {
        of.run(n, begin);
        of.check_answers();
      },
      incoming::count);
  of.check_sets();
  const std::uint64_t stack = input("STACK");
  const auto row_of = [&](const char* phase, double ns) {
    const std::string of = stack != usual_stack ? R"(,"stack":)" + std::to_string(stack) : "";
    row("callbacks", impl, R"({"phase":")" + std::string(phase) + '"' + of + "}", "/s", 1e9 / ns, note);
  };
  row_of("steady", steady);
  row_of("warm-up", warming_up);
}

}  // namespace bench
