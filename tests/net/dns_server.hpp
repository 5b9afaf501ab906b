// Name servers on loopback ports: dnsmasq, and one that says what a test wants, also what no good server would.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "net/support.hpp"
#include "pirn/fiber/scope.hpp"
#include "pirn/net/udp_socket.hpp"

namespace test {

/// A message that asks one question, and the answers to it.
struct dns_question {
  std::string message;  ///< as it came
  std::string name;     ///< with dots
  std::uint16_t type = 0;

  static std::string number(std::uint32_t value, int bytes) {
    std::string text;
    for (int i = bytes - 1; i >= 0; --i) {
      text += static_cast<char>(value >> (8 * i));
    }
    return text;
  }
  static dns_question of(std::string_view message) {
    dns_question read;
    read.message = message;
    std::size_t at = 12;
    while (message.at(at) != 0) {
      read.name +=
          (read.name.empty() ? "" : ".") + std::string(message.substr(at + 1, static_cast<std::uint8_t>(message[at])));
      at += static_cast<std::uint8_t>(message[at]) + std::size_t{1};
    }
    read.type = static_cast<std::uint16_t>(static_cast<std::uint8_t>(message.at(at + 1)) << 8 |
                                           static_cast<std::uint8_t>(message.at(at + 2)));
    read.question_end_ = at + 5;
    return read;
  }
  /// A record of the asked name, or of another one as it is written in messages.
  static std::string record(std::uint16_t type, std::uint32_t time, std::string_view data,
                            std::string_view owner = "\xc0\x0c") {
    return std::string(owner) + number(type, 2) + number(1, 2) + number(time, 4) +
           number(static_cast<std::uint32_t>(data.size()), 2) + std::string(data);
  }
  static std::string soa(std::uint32_t time, std::uint32_t minimum) {
    return record(6, time, std::string(2, '\0') + std::string(16, '\0') + number(minimum, 4));
  }
  [[nodiscard]] std::string reply(unsigned code, const std::vector<std::string>& answers,
                                  const std::vector<std::string>& authorities = {}) const {
    std::string text = message.substr(0, 2) + number(0x8180 | code, 2) + number(1, 2) +
                       number(static_cast<std::uint32_t>(answers.size()), 2) +
                       number(static_cast<std::uint32_t>(authorities.size()), 2) + number(0, 2) +
                       message.substr(12, question_end_ - 12);
    for (const std::string& each : answers) {
      text += each;
    }
    for (const std::string& each : authorities) {
      text += each;
    }
    return text;
  }
  /// The usual answer to A and AAAA.
  [[nodiscard]] std::string address(std::string_view v4, std::string_view v6, std::uint32_t time = 60) const {
    if (type == 1 && !v4.empty()) {
      return reply(0, {record(1, time, bytes(v4))});
    }
    if (type == 28 && !v6.empty()) {
      return reply(0, {record(28, time, bytes(v6))});
    }
    return reply(0, {}, {soa(time, time)});
  }
  static std::string bytes(std::string_view address) {
    const pirn::ip_address of = pirn::ip_address::parse(address).value();
    return {reinterpret_cast<const char*>(of.bytes().data()), of.is_v6() ? 16u : 4u};
  }

 private:
  std::size_t question_end_ = 0;
};

/// Answers in fibers of the runtime of the test. An empty answer is not sent. `answer` may suspend.
class scripted_server {
 public:
  using answers = std::function<std::string(const dns_question&)>;
  explicit scripted_server(answers answer) : answer_(std::move(answer)) {
    at = socket_.local_endpoint().value();
    serving_ = pirn::spawn([this] { serve(); });
  }
  ~scripted_server() {
    serving_.request_stop();
    serving_.join();
  }
  scripted_server(const scripted_server&) = delete;
  scripted_server& operator=(const scripted_server&) = delete;

  pirn::endpoint at;
  std::map<std::string, int> asked;  ///< "name type"

 private:
  void serve() {
    pirn::scope answering;
    char buffer[2048];
    while (const auto got = socket_.receive(buffer, sizeof buffer)) {
      const dns_question question = dns_question::of({buffer, got->size});
      ++asked[question.name + " " + std::to_string(question.type)];
      answering.spawn([this, question, from = got->from] {
        if (const std::string reply = answer_(question); !reply.empty()) {
          static_cast<void>(socket_.send_to(from, reply));
        }
      });
    }
  }

  answers answer_;
  pirn::udp_socket socket_ = pirn::udp_socket::bind(loopback()).value();
  pirn::fiber serving_;
};

}  // namespace test
