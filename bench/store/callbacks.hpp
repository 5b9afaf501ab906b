// The store by callbacks, on an engine that is a bare loop: what a connection does next is in its object. The engine
// sends, and writes the log; it calls `received`, `sent` and `logged`.
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "store.hpp"

namespace bench {

template <class Engine>
class callback_store {
 public:
  explicit callback_store(Engine& engine) : engine_(engine) {}

  void received(int socket, std::string_view bytes) {
    client& from = client_of(socket);
    from.unread.append(bytes);
    go_on(socket, from);
  }

  /// All that was to be sent has gone out.
  void sent(int socket) {
    client& to = client_of(socket);
    to.sending = false;
    to.answers.clear();
    go_on(socket, to);
  }

  /// The records that the engine was given are on the disk.
  void logged() {
    std::vector<int> ended = std::exchange(being_logged_, {});
    logging_ = false;
    for (const int socket : ended) {
      client& of = client_of(socket);
      of.logging = false;
      if (of.open) {
        std::string_view unread = of.unread;
        const request asked = parse(take_line(unread));
        data_.apply(asked.key, asked.value, of.answers);
        of.unread.erase(0, of.unread.size() - unread.size());
        go_on(socket, of);
      }
    }
    write_log();
  }

  void closed(int socket) { client_of(socket) = {}; }

 private:
  struct client {
    std::string unread, answers;
    bool open = false, logging = false, sending = false;
  };

  client& client_of(int socket) {
    const auto index = static_cast<std::size_t>(socket);
    if (clients_.size() <= index) {
      clients_.resize(index + 1);
    }
    return clients_[index];
  }

  void go_on(int socket, client& of) {
    of.open = true;
    std::string_view unread = of.unread;
    while (!of.logging && !of.sending) {
      std::string_view rest = unread;
      const std::string_view line = take_line(rest);
      if (line.empty()) {
        break;
      }
      const request asked = parse(line);
      if (asked.what == kind::set) {
        of.logging = true;
        store::record(asked, gathered_);
        to_log_.push_back(socket);
        break;  // its line stays until it is logged
      }
      data_.answer(asked, of.answers);
      unread = rest;
    }
    of.unread.erase(0, of.unread.size() - unread.size());
    if (!of.answers.empty() && !of.sending) {
      of.sending = true;
      engine_.send(socket, of.answers);
    }
    write_log();
  }

  void write_log() {
    if (!logging_ && !gathered_.empty()) {
      logging_ = true;
      being_logged_ = std::exchange(to_log_, {});
      records_ = std::exchange(gathered_, {});
      engine_.log(records_);
    }
  }

  Engine& engine_;
  store data_;
  std::deque<client> clients_;  // a string that is being sent stays where it is
  std::vector<int> to_log_, being_logged_;
  std::string gathered_, records_;
  bool logging_ = false;
};

}  // namespace bench
