// An RPC client: many fibers share a connection, on which answers come in any order. One of the waiting fibers reads
// for all: it finds the call of an answer by the id; that call then reads its payload and lets the next fiber read.
#pragma once

#include <expected>
#include <optional>

#include "client_error.hpp"
#include "rpc_protocol.hpp"
#include "transport.hpp"

namespace bench {

struct rpc_answer {
  std::uint16_t status = 0;
  std::uint64_t size = 0;
};

namespace {

class rpc_client {
 public:
  static constexpr std::size_t max_calls = 64;

  explicit rpc_client(connection& to) : to_(to), from_(to) {
    for (std::uint64_t slot = 0; slot < max_calls; ++slot) {
      free_.push(slot);
    }
  }

  /// Calls a method. `take(part)` gets each part of the answer's payload in place, until it returns.
  template <typename Take>
  [[nodiscard]] BENCH_INTERFACE std::expected<rpc_answer, client_error> call(std::uint16_t method, bytes argument,
                                                                             Take&& take) {
    pending mine;
    enlist(mine);
    const result answered = exchange(mine, method, argument);
    const result read = answered ? read_payload(mine.answer.size, take) : answered;
    strike_off(mine);
    if (!read) {
      broken(read.error());
      return std::unexpected(read.error());
    }
    reading_ = false;
    let_next_read();
    return rpc_answer{mine.answer.status, mine.answer.size};
  }

 private:
  using result = std::expected<void, client_error>;

  struct pending {
    frame_header answer;
    std::uint64_t id = 0;
    bool answered = false;
    signal turn;  ///< raised when its answer has come, or when it must read for all
  };

  static std::size_t slot_of(std::uint64_t id) { return id % max_calls; }

  void enlist(pending& mine) {
    check(!free_.empty(), "no more calls at once than a client has room for");
    const std::uint64_t slot = free_.pop();
    mine.id = ++calls_ * max_calls + slot;
    calls_of_[slot] = &mine;
  }
  void strike_off(const pending& mine) {
    calls_of_[slot_of(mine.id)] = nullptr;
    free_.push(slot_of(mine.id));
  }
  pending* find(std::uint64_t id) {
    pending* const found = calls_of_[slot_of(id)];
    return found != nullptr && found->id == id && !found->answered ? found : nullptr;
  }

  /// Sends the request and waits until the stream is at the payload of the answer.
  result exchange(pending& mine, std::uint16_t method, bytes argument) {
    if (error_) {
      return *error_;
    }
    const frame_header header = {.method = method, .id = mine.id, .size = argument.size()};
    if (!send(header, argument)) {
      return std::unexpected(client_error::closed);
    }
    return await_answer(mine);
  }

  bool send(const frame_header& header, bytes argument) {
    const turn mine(sending_);
    return to_.send(std::as_bytes(std::span(&header, 1)), argument);
  }

  result await_answer(pending& mine) {
    while (!mine.answered) {
      if (error_) {
        return *error_;
      }
      if (std::exchange(reading_, true)) {
        waiting_.push(mine.id);
        mine.turn.wait();
        continue;
      }
      const auto whose = read_header();
      if (!whose) {
        return std::unexpected(whose.error());
      }
      if (*whose != &mine) {
        (*whose)->turn.raise();
      }
    }
    return {};
  }

  /// Returns the call that the next frame answers.
  std::expected<pending*, client_error> read_header() {
    frame_header header;
    if (!from_.read_exactly(std::as_writable_bytes(std::span(&header, 1)))) {
      return std::unexpected(client_error::closed);
    }
    if (header.magic != frame_header::right_magic) {
      return std::unexpected(client_error::malformed);
    }
    pending* const whose = find(header.id);
    if (whose == nullptr) {
      return std::unexpected(client_error::unknown_id);
    }
    whose->answer = header;
    whose->answered = true;
    return whose;
  }

  template <typename Take>
  result read_payload(std::uint64_t size, Take& take) {
    while (size != 0) {
      const bytes part = from_.take(size);
      if (part.empty()) {
        return std::unexpected(client_error::closed);
      }
      take(part);
      size -= part.size();
    }
    return {};
  }

  /// Wakes the first call that waits for its answer. Some of the ids are of calls that have theirs.
  void let_next_read() {
    while (!waiting_.empty()) {
      if (pending* const next = find(waiting_.pop()); next != nullptr && next->turn.has_waiter()) {
        next->turn.raise();
        return;
      }
    }
  }

  /// Ends all calls with an error, since an unintelligible stream has no further answers.
  void broken(client_error why) {
    if (!error_) {
      error_ = std::unexpected(why);
      for (pending* const each : calls_of_) {
        if (each != nullptr) {
          each->turn.raise();
        }
      }
    }
  }

  connection& to_;
  reader from_;
  turns sending_;
  bool reading_ = false;  ///< whether a call reads a header, or the payload of its answer
  std::uint64_t calls_ = 0;
  std::optional<std::unexpected<client_error>> error_;
  std::array<pending*, max_calls> calls_of_ = {};
  ring<std::uint64_t, max_calls> free_;
  ring<std::uint64_t, 4 * max_calls> waiting_;
};

}  // namespace
}  // namespace bench
